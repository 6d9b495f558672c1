"""Which bytes a text is made of, and their codes."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

SHOWN = 20  # bytes of an alphabet, or of a text, in a message


@dataclass(frozen=True)
class Alphabet:
    """Code k is the byte symbols[k].

    >>> alphabet = Alphabet(b" abc")
    >>> alphabet.encode("cab a").tolist(), alphabet.decode(torch.tensor([3, 1, 2]))
    ([3, 1, 2, 0, 1], b'cab')
    """

    symbols: bytes

    def __post_init__(self) -> None:
        if len(self.symbols) < 2 or len(set(self.symbols)) < len(self.symbols):
            raise ValueError(f"symbols: got {self.symbols[:SHOWN]!r}; expected at least two different bytes, each once")

    @classmethod
    def of(cls, content: bytes) -> Self:
        """The bytes that occur, in their order."""
        return cls(bytes(sorted(set(content))))

    def __len__(self) -> int:
        return len(self.symbols)

    def encode(self, text: bytes | str) -> Tensor:
        """Codes, uint8 (n,); a text is seen as UTF-8. Bytes that are not in the alphabet are an error."""
        content = np.frombuffer(text.encode() if isinstance(text, str) else text, np.uint8)
        table = np.full(256, -1, np.int16)
        table[list(self.symbols)] = np.arange(len(self.symbols))
        codes = table[content]
        if len(codes) and codes.min() < 0:
            place = int((codes < 0).argmax())
            raise ValueError(
                f"text: got byte {bytes(content[place : place + 1])!r} at place {place:,}; expected one of the "
                f"{len(self)} bytes {self.symbols[:SHOWN]!r}{'...' if len(self) > SHOWN else ''}"
            )
        return torch.from_numpy(codes.astype(np.uint8))

    def decode(self, codes: Tensor) -> bytes:
        """The bytes of codes, (n,)."""
        table = np.frombuffer(self.symbols, np.uint8)
        return bytes(table[codes.cpu().numpy()])

    def names(self) -> list[str]:
        """Each symbol as a reader would call it.

        >>> Alphabet(b"\\n a\\xff").names()
        ['\\\\n', '␣', 'a', '\\\\xff']
        """
        return ["␣" if byte == 32 else repr(bytes([byte]))[2:-1] for byte in self.symbols]
