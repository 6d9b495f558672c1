import random
import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.data.compress import compress

from tessella.data.lzw import decompress

TEXT = bytes(random.Random(0).choices(b"box,\n", k=60_000))


@given(st.lists(st.sampled_from(b"ab\xff"), max_size=3000).map(bytes), st.integers(9, 16), st.sampled_from([0, 5, 700]))
@example(TEXT, 10, 0)
@example(TEXT, 12, 5000)
@example(b"", 16, 1)
def test_decompress_undoes_compress(data: bytes, widest: int, clear_every: int) -> None:
    assert decompress(compress(data, widest, clear_every)) == data


@pytest.mark.skipif(shutil.which("gzip") is None, reason="needs gzip, which also reads .Z files")
@pytest.mark.parametrize(("widest", "clear_every"), [(12, 0), (16, 0), (16, 5000), (13, 3)])
def test_gzip_agrees_on_the_format(widest: int, clear_every: int) -> None:
    packed = compress(TEXT, widest, clear_every)
    assert subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True).stdout == TEXT


@pytest.mark.parametrize("data", [b"", b"\x1f\x9d", b"\x1f\x8b\x90", b"\x1f\x9d\x90\xff\xff"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"not a .Z file"):
        decompress(data)
