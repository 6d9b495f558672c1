"""The `.Z` format of the Unix program `compress`, in which Connect-4 is still published.

Codes of 9 to 16 bits, lowest bit first, name strings: 0 .. 255 the bytes, 256 "forget all strings", from 257 on
(the string before) + (first byte of this one). Codes travel in groups of eight; when the width changes, the rest of the
group is padding.
"""

from collections.abc import Iterator

_MAGIC = b"\x1f\x9d"
_CLEAR = 256


def decompress(data: bytes) -> bytes:
    """The bytes that `compress` was given; ValueError when `data` cannot have come from it."""
    if data[:2] != _MAGIC or len(data) < 3 or not 9 <= data[2] & 0x1F <= 16:
        raise ValueError("not a .Z file: expected the bytes 1f 9d and a width of 9 to 16 bits")
    widest, clears = data[2] & 0x1F, bool(data[2] & 0x80)
    at, width, before, table, strings = 3, 9, b"", _bytes_table(clears), []
    while at < len(data):
        group, at = data[at : at + width], at + width
        for code in _codes(group, width):
            if clears and code == _CLEAR:
                width, before, table = 9, b"", _bytes_table(clears)
                break
            string = _string(code, before, table)
            strings.append(string)
            if before and len(table) < 1 << widest:
                table.append(before + string[:1])
            before = string
            if len(table) == 1 << width and width < widest:
                width += 1
                break
    return b"".join(strings)


def _bytes_table(clears: bool) -> list[bytes]:
    """The strings known at the start: every single byte, and a place for the clear code where there is one."""
    return [bytes([byte]) for byte in range(256)] + [b""] * clears


def _codes(group: bytes, width: int) -> Iterator[int]:
    bits, mask = int.from_bytes(group, "little"), (1 << width) - 1
    return (bits >> shift & mask for shift in range(0, len(group) * 8 - width + 1, width))


def _string(code: int, before: bytes, table: list[bytes]) -> bytes:
    if code < len(table):
        return table[code]
    if code == len(table) and before:
        return before + before[:1]  # the string being defined by this very code
    raise ValueError(f"not a .Z file: code {code} came before it was defined")
