"""Sets of items, preprocessed and split as published."""

from tessella.data.itemsets.loading import ItemSets, load_itemsets, load_transactions
from tessella.data.itemsets.registry import ITEMSETS
from tessella.data.itemsets.shape import SetShape

__all__ = ["ITEMSETS", "ItemSets", "SetShape", "load_itemsets", "load_transactions"]
