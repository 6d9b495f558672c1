"""What `SetFlow` is made of: baskets as they come, items by number, and the choice of a model."""

from tessella.estimators.baskets.choosing import Chosen, ModelKind, choose
from tessella.estimators.baskets.items import Items
from tessella.estimators.baskets.reading import Baskets, one_basket, read

__all__ = ["Baskets", "Chosen", "Items", "ModelKind", "choose", "one_basket", "read"]
