"""The difference of two kernels: what changes, and nothing else."""

from gemmlab import changed_lines


def copied(x, y):
    i = 3
    y[i] = x[i]


def doubled(x, y):
    i = 3
    y[i] = 2 * x[i]


def again(x, y):
    i = 3
    y[i] = x[i]


def test_only_the_changed_lines_are_marked():
    text = changed_lines(copied, doubled)
    assert text == "```diff\n     i = 3\n-    y[i] = x[i]\n+    y[i] = 2 * x[i]\n```"
    assert text._repr_markdown_() == text


def test_a_change_of_name_alone_is_none():
    assert "same, line by line" in changed_lines(copied, again)


def test_separate_changes_are_set_apart():
    def long(x):
        a = x[0]
        b = x[1]
        c = x[2]
        d = x[3]
        e = x[4]
        x[5] = a + b + c + d + e

    def longer(x):
        a = x[9]
        b = x[1]
        c = x[2]
        d = x[3]
        e = x[4]
        x[5] = a + b + c + d - e

    assert changed_lines(long, longer).splitlines().count("  ...") == 1
