"""The fixes, each as a rule that knows the differences it makes and no others."""

from collections.abc import Mapping

from tests.referees.platform.comparing import differences
from tests.referees.platform.fixes import answers, requests, servers
from tests.referees.platform.fixes.pair import Pair, Rule

# In the order in which they are asked: the first that knows a difference explains it.
RULES: Mapping[str, Rule] = {**requests.RULES, **servers.RULES, **answers.RULES}


def observed(pair: Pair) -> frozenset[str]:
    """The fixes that a pair of runs shows; a difference that none explains stands there as it is."""
    return frozenset(
        next((fix for fix, knows in RULES.items() if knows(pair, found)), f"unexplained: {found}")
        for found in differences(pair.sdk, pair.ours)
    )
