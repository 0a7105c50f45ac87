"""The text of a plan's dialog where lines are broken: what is looked for stands out."""

from __future__ import annotations

from pathlib import Path

from screens.plan_text import plan_text
from screens.text_state import line_text
from screens.wrap import hang
from tests.unit.action_kit import Kit


def test_each_job_stands_out_and_what_goes_on_below_it_stands_in(tmp_path: Path) -> None:
    lines = plan_text(Kit(tmp_path).plan("drain", "gpu-st-p5-[1-5]", reason="x"))
    job = next(line for line in lines if "llama3-405b-pretrain" in line_text(line))
    text = line_text(job)
    assert text.startswith("  48219  maria")
    assert hang(job, 40) == len("  48219  ")


def test_a_job_that_has_not_begun_has_lasted_for_nothing_that_could_be_told(tmp_path: Path) -> None:
    lines = [line_text(line) for line in plan_text(Kit(tmp_path).plan("drain", "gpu-dy-p5-1", reason="x"))]
    assert "  48222  kenji  moe-8x22b-anneal  starting nodes  16 GPUs" in lines
