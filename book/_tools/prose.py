"""Which numbers does a chapter's prose state, and does one of its cells print them?

Checked are decimal numbers, in text and in $mathematics$, and every number of a
bracketed list or matrix such as [1, -1.5]. Code, links, section numbers, versions
and citations are no claims and are left out.
"""
import re
from decimal import Decimal
from html.parser import HTMLParser

CODE_DIRECTIVES = re.compile(r"\{(code|code-block|code-cell|literalinclude|bibliography)\}")
FENCE = re.compile(r"\s*(`{3,}|~{3,}|:{3,})(.*)")
OPTION = re.compile(r"\s*:[\w-]+:")

# A minus is a sign only where nothing stands right before it: x-0.5 is a difference.
START, EXPONENT = r"(?:(?<![\w.)\]])-)?(?<![\w.])", r"(?:[eE][-+]?\d+)"
PRINTED = re.compile(rf"{START}\d+(?:\.\d*)?{EXPONENT}?")
CLAIM = re.compile(rf"{START}\d+(?:\.\d+{EXPONENT}?|{EXPONENT})(?!\d|\.\d)")
ITEM = rf"-?\d+(?:\.\d+)?{EXPONENT}?"
LIST = re.compile(rf"\[\s*{ITEM}(?:[\s,;]+{ITEM})*[\s,;]*\](?!\()")

NOT_CLAIMS = [re.compile(pattern, re.IGNORECASE | re.DOTALL | re.MULTILINE) for pattern in (
    r"<!--.*?-->", r"<[a-z/][^<>\n]*>",                    # comments and tags
    r"\{(?!math)[\w:]+\}`[^`]*`", r"(?<!\})(`+).+?\1",  # roles and code, but not {math}
    r"\]\([^)]*\)", r"https?://\S+", r"arxiv:\s?[\d.]+",
    r"^#+ +\d+(\.\d+)*\.? ",                            # a heading's own number
    r"\b(sections?|chapters?|equations?|eqs?\.|figures?|tables?|exercises?|§)\s*\d+(\.\d+)*",
    r"\b(pytorch|torch|python|jupyter book|version|unicode)\s*\d+(\.\d+)*", r"\bv\d+(\.\d+)*",
)]
# LaTeX and typography to plain ASCII, in this order.
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
THOUSANDS = r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?![\d,])"
PLAIN = [(re.compile(pattern), written) for pattern, written in (
    (r"10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)", lambda found: "10^" + found[1].translate(SUPERSCRIPTS)),
    (r"[−‐‑]", "-"), (r"(?<=\d)[–—]", " "), ("[\u2009\u202f\u00a0]", " "),
    (r"\\begin\{\w*matrix\}", "["), (r"\\end\{\w*matrix\}", "]"),
    (r"\\\\|&", ","), (r"\\[,;:! ]|~", " "), (r"\{([-,])\}", r"\1"),
    (r"\\times|\\cdot|×|·", "*"), (r"\\[a-zA-Z]+", " "),
    (r"\^\{(-?\d+)\}", r"^\1"), (r"\{", " "), (r"\}", ""),
    (r"(?<=\d)\s*\*\s*10\^(-?\d+)", r"e\1"), (r"(?<![\w.])10\^(-\d+)", r"1e\1"),
    (THOUSANDS, lambda found: found[0].replace(",", "")),
)]


def in_code(stack):
    return bool(stack) and stack[-1][1]


def prose_lines(source):
    """Each line of a cell, emptied where it is code or a directive's option."""
    stack = []  # the open fences, as (marker, does it hold code?)
    for line in source.splitlines():
        fence = FENCE.fullmatch(line)
        if fence and stack and fence[1].startswith(stack[-1][0]) and not fence[2].strip():
            stack.pop()
        elif fence and not in_code(stack):
            directive = fence[2].strip().startswith("{")
            stack.append((fence[1], not directive or bool(CODE_DIRECTIVES.search(fence[2]))))
            yield re.sub(r"\{[\w:-]+\}", "", fence[2]) if directive else ""
            continue
        yield "" if in_code(stack) or fence or (stack and OPTION.match(line)) else line


def blanked(pattern, text):
    """The text without what the pattern finds; lines stay where they are."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def plain(source):
    """The prose of a cell in ASCII, on the same lines as before."""
    text = "\n".join(prose_lines(source))
    for pattern in NOT_CLAIMS:
        text = blanked(pattern, text)
    for pattern, written in PLAIN:
        text = pattern.sub(written, text)
    return text


def claims(source):
    """The (number, line) pairs that a markdown cell states."""
    text = plain(source)
    places = {found.start(): found[0] for found in CLAIM.finditer(blanked(LIST, text))}
    for listed in LIST.finditer(text):
        items = re.finditer(ITEM, listed[0])
        places.update({listed.start() + item.start(): item[0] for item in items})
    for place, written in sorted(places.items()):
        yield Decimal(written), 1 + text.count("\n", 0, place)


class VisibleText(HTMLParser):
    """What a reader sees of a piece of HTML."""

    def __init__(self, html):
        super().__init__()
        self.hidden, self.words = 0, []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.hidden += tag in ("script", "style")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("script", "style")

    def handle_data(self, data):
        if not self.hidden:
            self.words.append(data)


def output_text(output):
    data = output.get("data", {})
    texts = ["".join(output.get("text", "")), "".join(data.get("text/plain", ""))]
    texts.append(" ".join(VisibleText("".join(data.get("text/html", ""))).words))
    return "\n".join(texts)


def printed(notebook):
    """Every number that the chapter's cells print."""
    outputs = [one for cell in notebook["cells"] for one in cell.get("outputs", [])]
    text = "\n".join(map(output_text, outputs)).replace("−", "-")
    text = re.sub(THOUSANDS, lambda found: found[0].replace(",", ""), text)
    return {Decimal(found[0]) for found in PRINTED.finditer(text)}


def unprinted(notebook):
    """The claims of a chapter that no cell backs, as one message each."""
    known = printed(notebook)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            source = "".join(cell["source"])
            for number, line in claims(source):
                if number not in known:
                    yield (f"{number} in cell {cell['id']}, line {line}, is printed by no cell: "
                           + source.splitlines()[line - 1].strip())
