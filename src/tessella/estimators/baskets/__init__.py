"""What `SetFlow` is made of: baskets as they come, items by number, models, and the choice of one."""

from tessella.estimators.baskets.choosing import Asked, Chosen, choose, shape_of
from tessella.estimators.baskets.items import Items
from tessella.estimators.baskets.network import KINDS, BasketModel, ModelKind
from tessella.estimators.baskets.reading import Baskets, one_basket, read

__all__ = [
    "KINDS",
    "Asked",
    "BasketModel",
    "Baskets",
    "Chosen",
    "Items",
    "ModelKind",
    "choose",
    "one_basket",
    "read",
    "shape_of",
]
