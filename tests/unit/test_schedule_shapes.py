"""Runs as every door tells them."""

from frontdesk.schedule.model import Forwarding, Past, Standing
from frontdesk.surfaces.scheduled import Run


def test_a_run_says_that_its_answer_was_not_taken_and_why() -> None:
    past = Past("run-1-1", 1, "ada", None, 1_000, 1, Standing.DELIVERED, 1, 2_000, 3_000, answer="Done")
    assert Run.of(past).model_dump()["webhook"] is None
    given_up = Past(
        *("run-1-1", 1, "ada", None, 1_000, 1, Standing.DELIVERED, 1, 2_000, 3_000),
        forwarded=Forwarding("dead", 12, "example.com answered 500"),
    )
    told = {"state": "dead", "attempt": 12, "error": "example.com answered 500"}
    assert Run.of(given_up).model_dump()["webhook"] == told
