"""The Unix program `compress`, in a few lines: what the decoder is tested against."""


def compress(data: bytes, widest: int, clear_every: int = 0) -> bytes:
    """The .Z form of `data`; with `clear_every`, block mode and a clear code after so many codes."""
    start = 257 if clear_every else 256
    out, group = bytearray(b"\x1f\x9d" + bytes([widest | (0x80 if clear_every else 0)])), []
    table, free, width, emitted, string = {}, start, 9, 0, b""

    def flush(whole: bool) -> None:
        bits = sum(code << (width * k) for k, code in enumerate(group))
        out.extend(bits.to_bytes(width if whole else (width * len(group) + 7) // 8, "little"))
        group.clear()

    def emit(code: int) -> None:
        group.append(code)
        if len(group) == 8:
            flush(whole=True)

    def code_of(text: bytes) -> int:
        return text[0] if len(text) == 1 else table[text]

    for byte in data:
        longer = string + bytes([byte])
        if len(longer) == 1 or longer in table:
            string = longer
            continue
        emit(code_of(string))
        emitted += 1
        if free >= 1 << width and width < widest:
            if group:
                flush(whole=True)
            width += 1
        if clear_every and emitted % clear_every == 0:
            emit(256)
            if group:
                flush(whole=True)
            table, free, width = {}, start, 9
        elif free < 1 << widest:
            table[longer], free = free, free + 1
        string = bytes([byte])
    if string:
        emit(code_of(string))
    if group:
        flush(whole=False)
    return bytes(out)
