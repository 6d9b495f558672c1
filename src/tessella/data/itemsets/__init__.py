"""Sets of items, preprocessed and split as published."""

from tessella.data.itemsets.loading import ItemSets, load_itemsets
from tessella.data.itemsets.registry import ITEMSETS

__all__ = ["ITEMSETS", "ItemSets", "load_itemsets"]
