"""Two models of one text on the same windows."""

import json

import pytest

from benchmarks.paired_texts import Pair, main
from tessella.data import text_of_file
from tessella.models import SoftmaxTextConfig
from tessella.nets import AttentionConfig
from tessella.runs import TextData, TextRunConfig, train_text
from tessella.training import TrainingConfig


@pytest.fixture
def run(tmp_path):
    text = tmp_path / "own.txt"
    text.write_text("the cat sat on the mat, and the dog sat on the cat. " * 60)

    def train(name, steps, length=16):
        training = TrainingConfig(steps=steps, batch_size=8, threads=1, progress=False, accelerator="cpu")
        model = SoftmaxTextConfig(AttentionConfig(width=8, layers=1))
        config = TextRunConfig(TextData(str(text), length, stride=8), model, training)
        train_text(config, text_of_file(text), tmp_path / name, validations=1)
        return tmp_path / name

    return train


def test_the_difference_is_that_of_the_values_and_nothing_between_a_model_and_itself(run, tmp_path):
    first, second, out = run("first", 1), run("second", 20), tmp_path / "pair.json"
    main(Pair(first, second, windows=8, out=out))
    record = json.loads(out.read_text())
    assert record["windows"] == 8
    assert record["difference"] == pytest.approx(record["bpc"][0] - record["bpc"][1])
    assert record["difference"] > 3 * record["stderr"] > 0  # twenty steps are better than one
    main(Pair(first, first, windows=8, out=out))
    same = json.loads(out.read_text())
    assert (same["difference"], same["stderr"]) == (0, 0)


def test_other_windows_are_refused(run):
    with pytest.raises(ValueError, match="second: got a run on"):
        main(Pair(run("first", 1), run("short", 1, length=8)))
