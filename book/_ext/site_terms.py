"""Sphinx extension: links each glossary term where a chapter first uses it, and enters that place in the index.

A word that also has an everyday meaning (the key of a keyboard) is linked only
where its author wrote it as a term: `terms_marked_by_hand` in _config.yml names them.
"""
import re
from pathlib import Path

from docutils import nodes
from site_static import write
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

GLOSSARY = "book/glossary"
# What is a name, a title, a formula or a link already holds no term to link.
CLOSED = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.reference, nodes.title,
          nodes.rubric, nodes.raw, nodes.comment, addnodes.pending_xref)


def terms_of(glossary):
    """The terms that a glossary defines: its lines that begin at the margin."""
    inside = glossary.partition("```{glossary}\n")[2].partition("\n```")[0]
    return [line.strip() for line in inside.splitlines() if line and not line[0].isspace()]


def pattern_of(terms):
    """Any of the terms, the longest first, so that "padding mask" is no use of "padding"."""
    words = "|".join(re.escape(term) for term in sorted(terms, key=len, reverse=True))
    return re.compile(rf"(?<![\w-])({words})(?:e?s)?(?![\w-])", re.IGNORECASE)


class LinkTerms(SphinxTransform):
    default_priority = 800  # before Sphinx collects what belongs into the index, at 850

    def apply(self, **_):
        terms = {term.lower(): term for term in self.config.glossary_terms}
        if self.env.docname == GLOSSARY or not terms:
            return
        self.left, self.pattern = terms, pattern_of(terms)
        for node in list(self.document.findall()):
            if isinstance(node, addnodes.pending_xref) and node.get("reftype") == "term":
                word = node["reftarget"].lower()
                if word in self.left:
                    node.parent.insert(node.parent.index(node), self.entered(word))
            elif isinstance(node, nodes.Text) and not within(node, CLOSED):
                self.link(node)

    def link(self, text):
        """Splits a text at the first uses of terms."""
        pieces, begin = [], 0
        for use in self.pattern.finditer(text):
            word = use[1].lower()
            if word in self.left and word not in self.config.terms_marked_by_hand:
                link = xref(self.left[word], use[0], self.env.docname)
                pieces += [nodes.Text(text[begin:use.start()]), self.entered(word), link]
                begin = use.end()
        if pieces:
            text.parent.replace(text, [*pieces, nodes.Text(text[begin:])])

    def entered(self, word):
        """Takes a term as used, and enters it into the index; returns the place that the entry leads to."""
        term = self.left.pop(word)
        place = f"term-{nodes.make_id(term)}"
        self.document.insert(0, addnodes.index(entries=[("single", f"{term}; {self.page()}", place, "", None)]))
        return nodes.target("", "", ids=[place])

    def page(self):
        """The title of the page, behind a chapter's number, by which the index then sorts."""
        number = re.match(r"book/(\d+)_", self.env.docname)
        title = next(self.document.findall(nodes.title)).astext()
        return f"{number[1]} {title}" if number else title


def within(node, kinds):
    """Whether a node stands in one of these."""
    while node is not None and not isinstance(node, kinds):
        node = node.parent
    return node is not None


def xref(term, text, docname):
    """What the role {term} makes."""
    options = {"refdomain": "std", "reftype": "term", "reftarget": term, "refdoc": docname, "refexplicit": True, "refwarn": True}
    return addnodes.pending_xref("", nodes.inline(text, text, classes=["xref", "std", "std-term"]), **options)


def read_glossary(app, config):
    path = Path(app.srcdir, f"{GLOSSARY}.md")
    config.glossary_terms = terms_of(path.read_text("utf-8")) if path.exists() else []


STYLE = "site-terms.css"
ONE_COLUMN = "@media (max-width: 40rem) { .genindextable td { display: block; width: auto !important; } }\n"


def write_style(app):
    write(app, STYLE, ONE_COLUMN)


def setup(app):
    app.add_css_file(STYLE)
    app.connect("builder-inited", write_style)
    app.add_config_value("site_terms_code", Path(__file__).read_text("utf-8"), "env", str)  # all pages are read again
    app.add_config_value("glossary_terms", [], "env", list)
    app.add_config_value("terms_marked_by_hand", [], "env", list)
    app.connect("config-inited", read_glossary)
    app.add_transform(LinkTerms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
