"""Translations keep what is no language, say what is missing, and become notebooks."""

import doctest
import gettext
import json
import re
from collections import Counter
from functools import cache

import nbformat
import pytest
from babel.messages import Catalog, Message
from babel.messages.pofile import write_po

from lab import start, translated
from tests.support.paths import ROOT

LANGUAGES = translated.languages()
CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))
WHOLE = ("00_start_here", "01_what_is_gemm")  # chapters whose text is translated

ROLE = r"\{(\w+)\}`(?:[^`<]*<)?([^`<>]+)>?`"
# What stays as it is, of a text without roles: code, formulas, targets, marks of HTML, exercises.
KEPT = {
    "code": r"`[^`]+`",
    "formula": r"\$\$?[^$]+\$\$?",
    "target": r"\]\([^)]*\)",
    "HTML": r"</?[a-z]+[^<>]*>",
    "exercise": r"\b\d\d\.\d\b",
    "bold": r"\*\*",
}
PUNCTUATION = r"[\s!-/:-@\[-`{-~。，；：？！、（）“”《》…—]"


catalogue = cache(translated.catalogue)


def told(language: str) -> list[Message]:
    return [one for one in catalogue(language) if one.id]


def faults(english: str, other: str) -> list[str]:
    """What a translation has lost, has too much or puts where Markdown misreads it."""
    found = []
    bare = [re.sub(ROLE, "", text) for text in (english, other)]
    pairs = {name: [re.findall(pattern, text) for text in bare] for name, pattern in KEPT.items()}
    pairs["role"] = [re.findall(ROLE, text) for text in (english, other)]
    for name, pair in pairs.items():
        before, after = map(Counter, pair)
        if before != after:
            found.append(f"{name}: {dict(before - after)} lost, {dict(after - before)} new")
    numbers = set(re.findall(r"(?<![\w.,])\d[\d,.]*\d|(?<![\w.,])\d(?![\w.,])", english))
    missing = {number for number in numbers if number.rstrip(".,") not in other}
    if missing:
        found.append(f"numbers: {missing} lost")
    if re.match(r"(?:\d+\.|[-+>#|]|\*(?!\S))\s", other):
        found.append("begins as a list, a heading or a table does")
    parts = re.split(r"(\*\*)", re.sub(r"`[^`]*`|\$[^$]*\$", "x", other))
    for i in range(1, len(parts), 4):  # from a mark that opens to the one that closes
        inside, before, after = parts[i + 1], parts[i - 1][-1:], parts[i + 3][:1]
        lost = re.match(PUNCTUATION, inside) and before and not re.match(PUNCTUATION, before)
        ends = re.match(PUNCTUATION, inside[-1:]) and after and not re.match(PUNCTUATION, after)
        if lost or ends:
            found.append(f"Markdown does not see where {inside!r} begins or ends")
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_no_language_is_kept(language):
    found = {one.id: faults(one.id, one.string) for one in told(language) if one.string}
    assert len(found) > 400
    assert {english: wrong for english, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("english", "other"),
    [
        ("Run `check`.", "运行。"),
        ("Run `check`.", "运行 `Check`。"),
        ("$m$ by $n$", "$m$ 乘 $m$"),
        ("See [here](a.md).", "见[这里](b.md)。"),
        ("A {term}`tile`.", "一个{term}`瓦片`。"),
        ("A {term}`tile`.", "一个瓦片。"),
        ("**Your turn (01.2).** Go.", "**轮到你了（01.1）。** 写吧。"),
        ("takes 14.7 µs", "用时 17.4 µs"),
        ("1. Tiles", "1. 瓦片"),
        ("**Why?** It", "**为什么？**它"),
        ("It is **(so)**.", "它是**（这样）** 的。"),
        ("**Bold** text", "粗体文字"),
        ("The idea<br>", "想法"),
    ],
)
def test_a_loss_is_seen(english, other):
    assert faults(english, other)


@pytest.mark.parametrize(
    ("english", "other"),
    [
        ("A {term}`tile`, `x`, $n$.", "$n$、`x`、{term}`瓦片 <tile>`。"),
        ("**Why?** In 2 steps", "**为什么？** 分 2 步"),
        ("1. Tiles", "1\\. 瓦片"),
        ("a **warp** of", "一个**线程束**（warp）"),
    ],
)
def test_what_is_kept_passes(english, other):
    assert faults(english, other) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_pages_that_count_as_translated_are(language):
    """How many paragraphs wait is told; a few may, for a change of the English text is no error."""
    states = Counter(
        "untranslated" if not one.string else "fuzzy" if one.fuzzy else "translated"
        for one in told(language)
    )
    print(language, dict(states))
    assert states["translated"] >= 0.95 * states.total(), dict(states)


# Of the Chinese guide to matrix multiplication that the course is built from.
TERMS = """
通用矩阵乘法 通用矩阵-向量乘积 标量 全连接层 卷积层 循环层 前向传递 权重 激活 跳跃连接 点积
外积 融合乘加 累积 转置 算术强度 ops:byte FLOPS:B 受数学运算限制 受内存限制 带宽 内存层次结构
对齐 倍数 平铺 瓦片 瓦片大小 瓦片效率 瓦片并行性 数据重用 线程块 多处理器 启动 利用率 吞吐量
持续时间 加速比 启发式 基准测试模式 设置和拆卸 分摊 归约 瓦片量化 波量化 量化效应 波大小 尾波
Tensor Core 融合
"""


def test_the_glossary_has_the_terms_of_the_guide():
    mine = [one.string for one in told("zh_CN") if "glossary" in [p for p, _ in one.locations]]
    assert [term for term in TERMS.split() if term not in "\n".join(mine)] == []


def test_a_doubtful_translation_is_not_shown(tmp_path):
    doubtful = Catalog(locale="zh_CN")
    doubtful.add("A tile", "瓦片")
    doubtful.add("A wave", "波浪", flags=["fuzzy"])
    doubtful.add("A tail")
    assert translated.sentences(doubtful) == {"A tile": "瓦片"}
    i18n = pytest.importorskip("sphinx.util.i18n")
    with (tmp_path / "x.po").open("wb") as file:
        write_po(file, doubtful)
    i18n.CatalogInfo(str(tmp_path), "x", "utf-8").write_mo("zh_CN")  # as the site does
    with (tmp_path / "x.mo").open("rb") as file:
        shown = gettext.GNUTranslations(file).gettext
    assert [shown(text) for text in ("A tile", "A wave")] == ["瓦片", "A wave"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_translated_notebook_has_the_same_cells(language, chapter):
    english = nbformat.read(chapter, as_version=4)
    sentences = translated.sentences(catalogue(language))
    other = nbformat.reads(translated.notebook(chapter, sentences).decode(), as_version=4)
    nbformat.validate(other)
    assert english.metadata == other.metadata
    assert [cell.id for cell in english.cells] == [cell.id for cell in other.cells]
    for before, after in zip(english.cells, other.cells, strict=True):
        assert before.cell_type == after.cell_type
        if before.cell_type == "code":
            assert before == after
        else:
            assert shape(before.source) == shape(after.source)


def shape(source: str) -> list[list[str]]:
    """What each block of a cell is: a heading, items, rows of a table, formulas, code, folds."""
    marks = r"(?m)^[ \t]*([-*+] |#+ |\d+\. |\||</?\w+>|\$\$|```)"
    return [re.findall(marks, block) for block in re.split(r"\n[ \t]*\n", source)]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", WHOLE)
def test_every_paragraph_of_a_translated_chapter_is_in_its_notebook(language, name):
    messages = [
        one
        for one in told(language)
        if f"notebooks/{name}" in [place for place, _ in one.locations] and one.string
    ]
    assert len(messages) > 40
    written = translated.notebook(
        ROOT / "notebooks" / f"{name}.ipynb", {one.id: one.string for one in messages}
    )
    cells = json.loads(written)["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert [one.string for one in messages if one.string not in text] == []
    prose = re.sub(
        r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|<!--.*?-->", "", text, flags=re.S
    )
    left = [line for line in prose.split("\n") if re.search(r"\b(?:the|of|and|is)\b", line)]
    assert [line for line in left if "*" not in line] == []  # titles of books stay as they are


def test_examples_in_docstrings_are_right():
    assert doctest.testmod(translated).failed == 0
    assert doctest.testmod(translated).attempted > 0


LINES = '<section id="x"> <h1>A</h1><p>B</p> <div class="cell docutils"></div> </section>'


@pytest.mark.parametrize(
    ("page", "english", "told"),
    [
        ("install", r'</p><div lang="en"><p>B</p>.*</div></section>$', "not translated"),
        ("notebooks/00_start_here", r'<div lang="en" class="cell ', "stay in English"),
        ("glossary", "", ""),
    ],
)
def test_a_page_says_what_stays_english_and_marks_it(page, english, told):
    languages = pytest.importorskip("book.languages")
    whole = page in languages.PAGES["zh_CN"]
    body = languages.marked(LINES, page, whole, lambda name: f"{name}.html")
    assert re.search(english, body)
    assert ('lang="en"' in body) == bool(english)
    assert told in body
    assert ('href="translating.html"' in body) == bool(told)
    assert re.findall("</?[a-z0-9]+", body).count("<div") == body.count("</div>")


def test_chinese_is_searched_for_by_pairs():
    languages = pytest.importorskip("book.languages")
    assert doctest.testmod(languages).failed == 0
    assert doctest.testmod(languages).attempted > 0


def test_an_unknown_language_is_named_with_those_that_there_are():
    with pytest.raises(ValueError, match="no translation into 'tlh'; there are: zh_CN"):
        translated.catalogue("tlh")


def test_the_lab_lays_translated_chapters_in_a_working_copy_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(start.working_copy, "trust", lambda *_: None)  # it writes into the home
    assert start.lay(tmp_path / "zh_CN", "zh_CN") == []
    first = json.loads((tmp_path / "zh_CN" / "00_start_here.ipynb").read_text("utf-8"))
    assert "".join(first["cells"][0]["source"]).startswith("# 从这里开始\n")
    assert len(list((tmp_path / "zh_CN").glob("*.ipynb"))) == len(CHAPTERS)
