"""Texts: registry, alphabets, loading."""

from tessella.data.texts.alphabet import Alphabet
from tessella.data.texts.loading import Text, load_text, text_of_file
from tessella.data.texts.registry import TEXTS

__all__ = ["TEXTS", "Alphabet", "Text", "load_text", "text_of_file"]
