"""Texts: found, verified, cut; errors that say what is wrong."""

import lzma
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tessella.data import TEXTS, Alphabet, load_text, text_of_file
from tessella.data.forms import Extent, Form
from tessella.data.reading import RawFile
from tessella.data.texts.registry import letters


@given(st.binary(min_size=2, max_size=200).filter(lambda content: len(set(content)) > 1))
def test_any_bytes_come_back(content):
    alphabet = Alphabet.of(content)
    codes = alphabet.encode(content)
    assert alphabet.decode(codes) == content
    assert int(codes.max()) == len(alphabet) - 1


def test_bytes_that_are_not_in_the_alphabet_are_named():
    with pytest.raises(ValueError, match=r"text: got byte b'X' at place 3; expected one of the 27 bytes b' abc"):
        letters(b"abcXYZ")
    with pytest.raises(ValueError, match="expected at least two different bytes"):
        Alphabet(b"aa")


def test_a_text_is_cut_in_its_own_order(tmp_path):
    content = bytes(range(97, 123)) * 100
    (tmp_path / "own.txt").write_bytes(content)
    text = text_of_file(tmp_path / "own.txt")
    assert [len(part) for part in text.parts.values()] == [2340, 130, 130]
    assert text.alphabet.decode(torch.cat(list(text.parts.values()))) == content
    assert len(text.windows("train", 40)) == 58
    with pytest.raises(ValueError, match=r"own.txt: its test part has 130 characters; expected at least length = 256"):
        text.windows("test", 256)
    with pytest.raises(ValueError, match="got byte b'a' at place 0; expected one of the 2 bytes b'xy'"):
        text_of_file(tmp_path / "own.txt", Alphabet(b"xy"))


def test_files_that_are_no_texts_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        text_of_file(tmp_path / "nothing.txt")
    (tmp_path / "empty.txt").write_bytes(b"")
    with pytest.raises(ValueError, match="got 0 bytes, 0 different; expected a text"):
        text_of_file(tmp_path / "empty.txt")
    with pytest.raises(ValueError, match="text 'text9': not known; expected one of text8, enwik8"):
        load_text("text9")


def test_a_published_text_must_be_what_was_published(empty_data: Path) -> None:
    (empty_data / "text8.xz").write_bytes(lzma.compress(b"a short text"))
    with pytest.raises(ValueError, match=r"text8.xz \(text8\): the sha256 checksum of its 12 bytes"):
        load_text("text8")
    (empty_data / "text8.xz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match="cannot be unpacked"):
        load_text("text8")


def test_length_and_alphabet_are_verified(tmp_path, monkeypatch):
    """Of content whose checksum is right."""
    path = tmp_path / "text8"
    path.write_bytes(b"a text of letters")
    monkeypatch.setattr("tessella.data.reading._verify", lambda *_: None)
    form = Form((RawFile("text8", "sha256:0"),), letters, Extent(100, 0, 27))
    with pytest.raises(ValueError, match="got 17 characters, 27 different; expected 100 characters, 27 different"):
        TEXTS["text8"].read(form, (path,))
    path.write_bytes(b"Capitals")
    with pytest.raises(ValueError, match="not what was published: text: got byte b'C' at place 0"):
        TEXTS["text8"].read(form, (path,))


def test_the_texts_given_here_are_whole_or_say_so(given_data: Path) -> None:
    text = load_text("text8")
    assert text.partial is None or "74,081,952 of 100,000,000" in text.partial
    assert set(text.validation.unique().tolist()) == set(range(27))
    assert len(text.train) == (len(text.train) + len(text.validation) + len(text.test)) * 90 // 100
