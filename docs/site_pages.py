"""The steps of the site that Sphinx has not: contents of sections, links into the repository, MathML, docstrings."""

from __future__ import annotations

import re
import sys
from pathlib import Path, PurePosixPath
from posixpath import normpath
from textwrap import dedent, indent
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

SECTIONS: dict[str, list[str]] = {
    "hf_mech/models/strips/README": [
        "/docs/notebooks/strips",
        "/docs/notebooks/logs",
        "/hf_mech/planning/README",
        "/docs/logs",
        "/docs/results/strips",
        "/docs/results/lifted",
    ],
    "hf_mech/models/stack/README": [
        "/docs/notebooks/stack",
        "/docs/add_stack",
        "/docs/results/formal_languages",
        "/docs/results/language_models",
    ],
    "hf_mech/models/dat/README": [
        "/docs/notebooks/programs",
        "/hf_mech/programs/psl/README",
        "/hf_mech/programs/templatic/README",
        "/hf_mech/programs/nested_functions/README",
        "/hf_mech/programs/tensor_products/README",
        "/hf_mech/programs/llm_test/README",
        "/docs/results/programs",
        "/docs/results/machines",
        "/docs/results/nested_functions",
        "/docs/results/templatic",
        "/docs/results/semi_formal",
        "/docs/results/discover",
    ],
    "hf_mech/models/belief_state/README": [
        "/docs/notebooks/belief_states",
        "/docs/belief_states",
        "/hf_mech/lookahead/star_graphs/README",
        "/hf_mech/lookahead/stories/README",
        "/docs/results/star_graphs",
        "/docs/results/stories",
    ],
    "hf_mech/models/msat/README": [
        "/docs/notebooks/msat",
        "/docs/offline_data",
        "/hf_mech/control/README",
        "/docs/results/vizdoom",
    ],
    "docs/data_sets": [
        "/hf_mech/metrics/path_accuracy/README",
        "/hf_mech/metrics/strips_domain_equivalence/README",
        "/hf_mech/metrics/strips_trace_accuracy/README",
    ],
    "model_cards/README": ["/model_cards/*/README"],
    "docs/results/strips": ["/docs/results/strips-*/README"],
    "docs/results/lifted": ["/docs/results/lifted-*/README"],
    "docs/results/formal_languages": [
        f"/docs/results/stack-{name}*/README"
        for name in (
            "reverse",
            "stack",
            "modular",
            "solve",
            "parity",
            "even",
            "cycle",
            "b",
            "duplicate",
            "missing",
            "odds",
        )
    ],
    "docs/results/language_models": ["/docs/results/stack-lm*/README"],
    "docs/results/programs": ["/docs/results/dat-*/README"],
    "docs/results/machines": ["/docs/results/psl-*/README"],
    "docs/results/nested_functions": ["/docs/results/nested-*/README"],
    "docs/results/templatic": ["/docs/results/templatic-*/README"],
    "docs/results/semi_formal": ["/docs/results/semi-*/README"],
    "docs/results/discover": ["/docs/results/discover-*/README"],
    "docs/results/star_graphs": ["/docs/results/belief-state-star-*/README"],
    "docs/results/stories": ["/docs/results/belief-state-stories*/README"],
    "docs/results/vizdoom": ["/docs/results/msat-*/README"],
}
"""By page, the pages of its section: the site's contents, which Markdown files on GitHub cannot say."""


NAMESAKES = (
    "hf_mech.models.stack.add_stack",
    "hf_mech.models.stack.stack_attention",
    "hf_mech.models.strips.strips_attention",
    "hf_mech.programs.tensor_products.discover",
)
"""Modules named as a function that their package exports: the reference has one place for a name, the function's."""


def add_contents(_app: Sphinx, page: str, text: list[str]) -> None:
    """Adds the list of its section to a page, and the way to download it to a notebook."""
    if page in SECTIONS:
        lines = "\n".join(SECTIONS[page])
        glob = ":glob:\n" if "*" in lines else ""
        text[0] += f"\n\n## In this section\n\n```{{toctree}}\n:maxdepth: 1\n{glob}\n{lines}\n```\n"
    if page.startswith("docs/notebooks/"):
        download = f"{{nb-download}}`{page.rpartition('/')[2]}.ipynb`"
        text[0] = re.sub(r"^# .*$", rf"\g<0>\n\nAs a notebook: {download}.", text[0], count=1, flags=re.MULTILINE)


FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
TREE = re.compile(r"^(\S.*[^:\n])\n(?= {4}\S.* {2,}\S)", re.MULTILINE)
MATH = re.compile(r"^( *)\$\$(.+?)\$\$|\$(?! )([^$\n]+?)(?<! )\$", re.DOTALL | re.MULTILINE)
REFERENCE = re.compile(r"\[`~?([\w.]+)`\]")


def code_block(match: re.Match[str]) -> str:
    """A fenced block of code as a directive."""
    return f"{match[1]}.. code-block:: {match[2] or 'text'}\n\n{indent(match[3], '    ')}"


def in_math(match: re.Match[str]) -> str:
    """A formula between dollars, of a paragraph's own or within one."""
    block, formula = match[2], match[3]
    return f"{match[1]}.. math::\n\n{indent(dedent(block), '    ' + match[1])}\n" if block else f":math:`{formula}`"


def list_table(match: re.Match[str]) -> str:
    """A Markdown table as a directive."""
    rows = [re.split(r" +\| +", row.strip("| ")) for row in match[0].splitlines() if not row.startswith("|--")]
    items = ("   * - " + "\n     - ".join(cells) for cells in rows)
    return ".. list-table::\n   :header-rows: 1\n\n" + "\n".join(items) + "\n"


def rewrite_docstring(_app: Sphinx, _kind: str, _name: str, _what: object, _options: object, lines: list[str]) -> None:
    """A docstring as those of transformers, with Markdown's code, tables, formulas and [`references`], for docutils."""
    text = TREE.sub(r"\1 ::\n\n", "\n".join(lines))  # a folder and its files in columns
    text = TABLE.sub(list_table, FENCE.sub(code_block, MATH.sub(in_math, text)))
    lines[:] = REFERENCE.sub(r":py:obj:`.\1`", text).split("\n")


def readable_signature(
    _app: Sphinx, _kind: str, _name: str, _what: object, _options: object, signature: str | None, result: str | None
) -> tuple[str | None, str | None]:
    """Defaults that are no Python, such as `<factory>`, become dots: docutils would not parse the signature."""
    return re.sub(r"<[^<>]*>", "...", signature or "") or None, result


def left_out(app: Sphinx, _kind: str, name: str, what: object, _skip: bool, _options: object) -> bool | None:
    """Leaves out what others document: transformers, tuples of Python, and packages above a module."""
    if str(getattr(what, "__module__", "")).startswith("transformers."):
        return True
    if (getattr(what, "__doc__", None) or "").startswith("Alias for field number"):
        return True
    if not callable(what):
        return None
    module = app.env.docname.rpartition("/")[2]
    while "." in module:
        module = module.rpartition(".")[0]
        if name in getattr(sys.modules.get(module), "__all__", ()):
            return True
    return None


def own_source(_app: Sphinx, module: str, name: str) -> str | None:
    """The module whose source is shown for a name: never one of Python or of a library."""
    value = getattr(sys.modules.get(module), name.partition(".")[0], None)
    return None if str(getattr(value, "__module__", "hf_mech")).startswith("hf_mech") else module


class ShortContents(SphinxTransform):
    """Modules of modules stay out of the contents beside every page: the page above has a table of them."""

    default_priority = 8

    def apply(self, **_: Any) -> None:
        if self.env.docname.startswith("docs/api/generated/"):
            for tree in list(self.document.findall(addnodes.toctree)):
                tree.parent.remove(tree)


class RepositoryLinks(SphinxTransform):
    """Links to files and folders of the repository that are no pages of the site.

    A folder with a README leads to its page, everything else to the repository, if its address is known
    (SITE_REPOSITORY). Else a file is downloaded, and a folder is plain text.
    """

    default_priority = 5

    def apply(self, **_: Any) -> None:
        root = Path(self.env.srcdir)
        repository = self.config.html_context["repository"]
        for link in list(self.document.findall(nodes.Element)):
            domain, target = link.get("refdomain"), link.get("reftarget", "")
            if link.get("reftype") != "myst" or (domain == "doc" and target in self.env.found_docs):
                continue
            folder = PurePosixPath() if domain == "doc" else PurePosixPath(self.env.docname).parent
            path = normpath(folder / (f"{target}.md" if domain == "doc" else target))
            names = link.attributes | {"refdomain": None, "reftarget": f"/{path}"}
            if (root / path / "README.md").is_file():
                page = f"{path}/README" if path != "." else "README"
                names |= {"refdomain": "doc", "reftarget": page, "reftargetid": None}
                link.replace_self(addnodes.pending_xref("", *link.children, **names))
            elif repository and (root / path).exists():
                uri = f"{repository}/blob/main/{path}"
                link.replace_self(nodes.reference("", "", *link.children, refuri=uri))
            elif (root / path).is_dir():
                link.replace_self(nodes.inline("", "", *link.children))
            elif (root / path).is_file():
                link.replace_self(addnodes.download_reference("", "", *link.children, **names))


class Pictures(SphinxTransform):
    """GitHub's `<picture>` of a light and a dark image, as two images of which the theme shows one."""

    default_priority = 7

    def apply(self, **_: Any) -> None:
        for raw in list(self.document.findall(nodes.raw)):
            text = raw.astext()
            if not text.startswith("<picture>"):
                continue
            dark, light, alt = (re.findall(rf' {name}="([^"]*)"', text)[0] for name in ("srcset", "src", "alt"))
            images = {"only-light": light, "only-dark": dark}
            raw.replace_self([nodes.image("", uri=uri, alt=alt, classes=[name]) for name, uri in images.items()])


class EquationLinks(SphinxTransform):
    """In a table of a README, the names of files and functions lead to the API reference, where it has them."""

    default_priority = 6

    def apply(self, **_: Any) -> None:
        root, page = Path(self.env.srcdir), PurePosixPath(self.env.docname)
        if page.parts[0] != "hf_mech":
            return
        for cell in self.document.findall(nodes.entry):
            for code in list(cell.findall(nodes.literal)):
                text = code.astext()
                files = [file for file in (page.parent / text, PurePosixPath(text)) if (root / file).is_file()]
                if text.endswith(".py") and files:
                    target = {"reftype": "mod", "reftarget": ".".join(files[0].with_suffix("").parts)}
                elif re.fullmatch(r"[\w.]+", text):
                    target = {"reftype": "obj", "reftarget": text, "refspecific": True}
                else:
                    continue
                link = addnodes.pending_xref("", refdomain="py", refdoc=self.env.docname, refwarn=False, **target)
                code.replace_self(link)
                link += code


def for_all_readers(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _document: Any) -> None:
    """What screen readers and keyboards need: captions have a level, what scrolls can be reached, lists are whole."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')
    if body := context.get("body"):
        body = body.replace("<pre>", '<pre tabindex="0">')
        for kind in ("table", "math"):
            body = body.replace(f'<div class="{kind}-wrapper', f'<div tabindex="0" class="{kind}-wrapper')
        body = SIGNATURE.sub(signature_lines, body)
        context["body"] = BACK.sub(back_to_reference, body)


BACK = re.compile(
    r'(<div class="viewcode-block" id="([^"]+)">\n<a class="viewcode-back" href="[^"]+/([^"/]+)\.html)#[^"]*'
)
"""From the source back to the reference: Sphinx takes one name of a module for all of its objects, we the page's."""
SIGNATURE = re.compile(r"<dl>\n(<dd>.*?</dd>\n)</dl>", re.DOTALL)


def back_to_reference(match: re.Match[str]) -> str:
    """The link to an object's place; to the page alone where a module has no places."""
    page, name, module = match.groups()
    return page if module in NAMESAKES else f"{page}#{module}.{name}"


def signature_lines(match: re.Match[str]) -> str:
    """The arguments of a long signature, which Sphinx writes as a list of definitions without terms."""
    lines = match[1].replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>")
    return f"<span>\n{lines}</span>"


def math_inline(translator: Any, node: nodes.math) -> None:
    """A formula as MathML, which browsers draw by themselves."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def math_block(translator: Any, node: nodes.math_block) -> None:
    """The same in a line of its own."""
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Adds them."""
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-docstring", rewrite_docstring, priority=400)  # before napoleon
    app.connect("autodoc-process-signature", readable_signature)
    app.connect("autodoc-skip-member", left_out)
    app.connect("viewcode-follow-imported", own_source)
    app.connect("html-page-context", for_all_readers, priority=900)  # after the theme
    app.add_transform(RepositoryLinks)
    app.add_transform(ShortContents)
    app.add_transform(Pictures)
    app.add_transform(EquationLinks)
    app.add_html_math_renderer("mathml", (math_inline, None), (math_block, None))
