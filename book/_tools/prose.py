"""Which numbers does a chapter's prose state, and does one of its cells print them?

Checked are decimal numbers, integers of three or more digits, percentages and
fractions of integers, in text and in $mathematics$. A list or matrix such as
[1, -1.5] or (9, 8, 7) has to be printed as a list, its numbers in this order.
Code, links, section numbers, versions and citations are no claims and are left out.

Three things are looser. A problem's own numbers need no output: a list or an
integer may also stand as a literal in a code cell of the chapter. Sizes told
together in parentheses, such as (D = 64, H = 4, F = 256), are chosen, not found:
they are no claims. And what a number format defines (FACTS) needs no cell.
"""
import re
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser

CODE_DIRECTIVES = re.compile(r"\{(code|code-block|code-cell|literalinclude|bibliography)\}")
FENCE = re.compile(r"\s*(`{3,}|~{3,}|:{3,})(.*)")
OPTION = re.compile(r"\s*:[\w-]+:")

# A minus is a sign only where nothing stands right before it: x-0.5 is a difference.
START, EXPONENT = r"(?:(?<![\w.)\]])-)?(?<![\w.])", r"(?:[eE][-+]?\d+)"
DECIMAL = r"(?:\d+(?:\.\d*)?|\.\d+)"
PRINTED = re.compile(rf"{START}{DECIMAL}{EXPONENT}?")
END = r"(?!\d|\.\d)"
CLAIM = re.compile(rf"{START}(?:\d*\.\d+{EXPONENT}?|\d+{EXPONENT}|\d{{3,}}(?!\w)){END}")
PERCENT = re.compile(rf"{START}{DECIMAL}\s*%")
FRACTION = re.compile(rf"{START}\d+\s*/\s*[1-9]\d*(?!\w){END}")
ITEM = rf"-?(?:\d+(?:\.\d+)?|\.\d+){EXPONENT}?"
LIST = re.compile(rf"\[\s*{ITEM}(?:[\s,;]+{ITEM})*[\s,;]*\](?!\()|\(\s*{ITEM}(?:[\s,;]+{ITEM})+[\s,;]*\)")
BETWEEN = r"(?:[\s,;\[\]()]|tensor\()+"                # what a printed list has between its numbers
RUN = re.compile(rf"{PRINTED.pattern}(?:{BETWEEN}{PRINTED.pattern})*")

FACTS = {Decimal(65504)}  # the largest number of float16
NOT_CLAIMS = [re.compile(pattern, re.IGNORECASE | re.DOTALL | re.MULTILINE) for pattern in (
    r"<!--.*?-->", r"<[a-z/][^<>\n]*>",                    # comments and tags
    r"\{(?!math)[\w:]+\}`[^`]*`", r"(?<!\})(`+).+?\1",  # roles and code, but not {math}
    r"\]\([^)]*\)", r"https?://\S+", r"arxiv:\s?[\d.]+",
    r"^#+ +\d+(\.\d+)*\.? ",                            # a heading's own number
    r"\b(sections?|chapters?|equations?|eqs?\.|figures?|tables?|exercises?|§)\s*\d{1,2}(?![.,]?\d)",
    r"\b(pytorch|torch|python|jupyter book|unicode)\s*[1-9]\d*(\.\d+)*",
    r"\bet al\.,? \(?(19|20)\d\d\b", r"\([^\W\d]+( (and|&) [^\W\d]+)?,? (19|20)\d\d\)",  # citations
    r"\(\$?[A-Z] = \d+\$?(,\s\$?[A-Z] = \d+\$?)+",         # sizes in parentheses
)]
# LaTeX and typography to plain ASCII, in this order.
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
THOUSANDS = r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?!,?\d)"
PLAIN = [(re.compile(pattern), written) for pattern, written in (
    (r"10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)", lambda found: "10^" + found[1].translate(SUPERSCRIPTS)),
    (r"[−‐‑]", "-"), (r"(?<=\d)[–—]", " "), ("[\u2009\u202f\u00a0]", " "),
    (r"\\begin\{\w*matrix\}", "["), (r"\\end\{\w*matrix\}", "]"),
    (r"\\\\|&", ","), (r"\\[,;:! ]|~", " "), (r"\{([-,])\}", r"\1"),
    (r"\\[dt]?frac\s*\{(-?\d+)\}\s*\{(\d+)\}", r"\1/\2"), (r"\\[dt]?frac\s*(\d)\s*(\d)", r"\1/\2"),
    (r"(?<![\w\\$})|])_+(?!\{)([^_\s](?:[^_]*[^_\s])?)_+(?!\w)", r" \1 "),  # emphasis
    (r"_\{(\d+)\}", r"_\1"), (r"\\%", "%"), (r"\\times|\\cdot|×|·", "*"), (r"\\[a-zA-Z]+", " "),
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


def lists_of(text):
    for found in LIST.finditer(text):
        yield found.start(), [Decimal(item[0]) for item in re.finditer(ITEM, found[0])]


def percentage(found):
    return Decimal(found[0].rstrip("%").strip())


def fraction(found):
    return Fraction(re.sub(r"\s", "", found[0]))


def claims(source):
    """The (what, line) pairs that a markdown cell states.

    What is a number, a Fraction, a percentage as written (such as "98 %"), or a
    list of numbers.
    """
    text = plain(source)
    places = dict(lists_of(text))
    rest = blanked(LIST, text)
    places.update({found.start(): f"{percentage(found)} %" for found in PERCENT.finditer(rest)})
    rest = blanked(PERCENT, rest)
    places.update({found.start(): fraction(found) for found in FRACTION.finditer(rest)})
    places.update({found.start(): Decimal(found[0]) for found in CLAIM.finditer(blanked(FRACTION, rest))})
    for place, what in sorted(places.items(), key=lambda one: one[0]):
        yield what, 1 + text.count("\n", 0, place)


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


def output_texts(output):
    """What an output shows, form by form, with numbers written as Decimal reads them."""
    data = output.get("data", {})
    html = " ".join(VisibleText("".join(data.get("text/html", ""))).words)
    for text in ("".join(output.get("text", "")), "".join(data.get("text/plain", "")), html):
        yield re.sub(THOUSANDS, lambda found: found[0].replace(",", ""), text.replace("−", "-"))


def literals(source):
    """The lists, and the integers of three or more digits, in a code cell."""
    code = re.sub(r"#.*|(?<=\d)_(?=\d)", "", source)
    whole = re.findall(r"(?<![\w.])\d{3,}(?!\w|\.\d)", code)
    return [listed for _, listed in lists_of(code)] + [Decimal(number) for number in whole]


class Printed:
    """What the cells of a chapter print, to be asked whether it holds a claim."""

    def __init__(self, notebook):
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        texts = [text for cell in cells for one in cell["outputs"] for text in output_texts(one)]
        self.literals = [one for cell in cells for one in literals("".join(cell["source"]))]
        self.runs = [[Decimal(one[0]) for one in PRINTED.finditer(run[0])]
                     for text in texts for run in RUN.finditer(text)]
        self.numbers = {number for run in self.runs for number in run}
        self.percentages = {percentage(one) for text in texts for one in PERCENT.finditer(text)}
        self.fractions = {fraction(one) for text in texts for one in FRACTION.finditer(text)}

    def holds(self, what):
        if isinstance(what, list):
            return what in self.literals or any(
                what == run[k:k + len(what)] for run in self.runs for k in range(len(run)))
        if isinstance(what, Fraction):
            return what in self.fractions or what in map(Fraction, self.numbers)
        if isinstance(what, str):
            number = Decimal(what.rstrip(" %"))
            return number in self.percentages or number / 100 in self.numbers
        return what in self.numbers or what in self.literals or what in FACTS


def unprinted(notebook):
    """The claims of a chapter that no cell backs, as one message each."""
    known = Printed(notebook)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            source = "".join(cell["source"])
            for what, line in claims(source):
                if not known.holds(what):
                    written = f"[{', '.join(map(str, what))}]" if isinstance(what, list) else what
                    yield (f"{written} in cell {cell['id']}, line {line}, is printed by no cell: "
                           + source.splitlines()[line - 1].strip())
