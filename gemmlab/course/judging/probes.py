"""Second hints: what to try, or where to look, for what a check has found."""

from __future__ import annotations

from gemmlab.course.judging.verdict import DRAWN_ANEW, FAILING, Verdict


def probe(verdict: Verdict) -> str:
    """Something to try that tells more than the verdict did; empty where nothing was run."""
    told, details = dict(verdict.facts), verdict.details
    case = (
        told.get(FAILING) or told.get(DRAWN_ANEW) or told.get("Worst case") or told.get("Case", "")
    )
    if "error" in details and "line" in details:
        return (
            f"Put a `print(...)` of every value that line {details['line']} uses just above it, "
            "and check again: what is printed last is what the line stopped at."
        )
    if "kind" in details and "line" in details:
        who = " and ".join(str(tuple(t)) for t in details.get("threads", ())[:2])
        of = f" thread{'s' if ' and ' in who else ''} (x, y, z) = {who}" if who else " that thread"
        return (
            f"Look at line {details['line']}, `{details['code']}`. On paper, work out for{of} the "
            "index that the line computes there, and find the other line that touches this element."
        )
    if "function" in details:
        return (
            f"Call `{case}` in a cell of its own and print what each line of your code has. Then "
            "change one argument, to 1 or to twice as much: by what should the result change, and "
            "by what does it?"
        )
    if "index" in details:
        at = ", ".join(map(str, details["index"]))
        return (
            f"Follow the element [{at}] alone: in your kernel, print each value that is added to "
            "it, under an `if` that only its thread passes. Which one differs from the definition "
            "first?"
        )
    if "counters" in details or "budget" in details:
        return (
            "Simulate your kernel on a small case of your own and show `report.listing()`: it has "
            "the counts beside each line. Which line has more than you expect of it?"
        )
    if case:
        return f"Take the case that is named alone, {case}, and do it by hand beside your code."
    return ""
