"""Whose notebook a file is, by its place or by the names that Canvas and Moodle give files."""

import datetime
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

# Names of files in what Canvas hands out: of "doejane_LATE_123_456_ch04.ipynb" 123 is the student.
CANVAS = re.compile(r"(?P<name>[^_]+)(?P<late>_LATE)?_(?P<number>\d+)_\d+_.+")
# Names of folders in what Moodle hands out.
MOODLE = re.compile(r"(?P<name>.+)_(?P<number>\d+)_assignsubmission_file_?")


@dataclass(frozen=True)
class Handed:
    """A file that was handed in.

    student : by name; number : by which Canvas or Moodle knows them, empty elsewhere
    late : whether its name says so; when : it was changed last
    """

    path: Path
    student: str
    number: str = ""
    late: bool = False
    when: datetime.datetime = datetime.datetime.min

    def is_late(self, due: datetime.datetime | None) -> bool:
        """Whether it came after the time that a rubric names, or its name says that it is late."""
        return self.late or (due is not None and self.when > due)


def handed_in(paths: Sequence[Path]) -> list[Handed]:
    """The notebooks among files and folders, in the order of their students' names.

    Of a folder, each folder in it is a student's, and each notebook beside those. Of files, the
    student is the folder below the one that they have in common, or the file's name where it is
    there. Raises ValueError where there is none.
    """
    files = [path for path in paths if not path.is_dir()]
    if missing := [path for path in files if not path.exists()]:
        raise ValueError(f"there is no {missing[0]}; name notebooks, or folders of them")
    found = [_handed(path, folder) for folder in paths if folder.is_dir() for path in _in(folder)]
    if files:
        above = Path(os.path.commonpath([path.absolute().parent for path in files]))
        found += [_handed(path.absolute(), above) for path in files]
    if not found:
        raise ValueError(f"there is no notebook in {', '.join(map(str, paths)) or 'no folder'}")
    return sorted(_apart(found), key=lambda one: (one.student, one.when, str(one.path)))


def _apart(found: list[Handed]) -> Iterator[Handed]:
    """The same, with the numbers in the names of those students who have a name in common."""
    numbers: dict[str, set[str]] = defaultdict(set)
    for one in found:
        numbers[one.student].add(one.number)
    for one in found:
        several = len(numbers[one.student] - {""}) > 1 and one.number
        yield replace(one, student=f"{one.student} ({one.number})") if several else one


def printable(text: str) -> str:
    """A name as text for one line of a table: without what moves a cursor or is no character."""
    joining = "\u200c\u200d"  # within letters of Persian, and emoji
    return "".join(
        c if c.isprintable() or c in joining else c.encode("unicode_escape").decode()
        for c in unicodedata.normalize("NFC", text)
    )


def _in(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.ipynb")):
        if path.is_dir() and not path.is_symlink():
            continue
        if not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


def _handed(path: Path, above: Path) -> Handed:
    first, *further = path.relative_to(above).parts
    name = first if further else path.stem
    when = _changed(path)
    for pattern, text in ((MOODLE, first), (CANVAS, path.stem)):
        if told := pattern.fullmatch(text):
            groups = told.groupdict()
            late = bool(groups.get("late"))
            return Handed(path, printable(groups["name"]), groups["number"], late, when)
    return Handed(path, printable(name), when=when)


def _changed(path: Path) -> datetime.datetime:
    """When a file, or a link, was changed last; the end of time if that is in no calendar."""
    try:
        return datetime.datetime.fromtimestamp(int(path.lstat().st_mtime)).astimezone()
    except (ValueError, OverflowError, OSError):
        return datetime.datetime.max.replace(tzinfo=datetime.UTC)
