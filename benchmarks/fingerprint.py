"""The hash of a program's text: what was recorded of it is known to be of this program."""

from __future__ import annotations

import ast
import hashlib


def fingerprint(source: str) -> str:
    r"""Hash a program without its imports, comments, docstrings and layout.

    A name may be imported from elsewhere without being another one, and words do not run.

    >>> fingerprint("import a\\nx = f( 1 )  # one") == fingerprint("from b import a\\nx = f(1)")
    True
    >>> fingerprint("x = f(1)") == fingerprint("x = f(2)")
    False
    """
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    for node in ast.walk(tree):
        has_words = (ast.Module, ast.ClassDef, ast.FunctionDef)
        if isinstance(node, has_words) and node.body and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()
