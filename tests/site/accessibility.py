"""What axe finds on a page."""
from axe_playwright_python.base import AXE_SCRIPT

# Without `preload` it would look for imported style sheets in the wrong folder.
OPTIONS = {"preload": False, "resultTypes": ["violations"]}

# Axe looks at what lies on what for each of thousands of tokens. They are coloured by their kind.
# The longest that is seen of a kind stays, one in what is run and one in what it prints, which lie on other grounds:
# of a single character axe does not judge the contrast.
ONE_TOKEN_OF_EACH_KIND = """() => {
    const codes = [...document.querySelectorAll(".highlight pre")], longest = {};
    const tokens = codes.flatMap((code) => [...code.querySelectorAll("span")]);
    const kind = (token) => `${token.closest(".cell_output, .admonition, details")?.className} ${token.className}`;
    for (const token of tokens.filter((token) => token.checkVisibility()))
        if (!(longest[kind(token)]?.textContent.length >= token.textContent.length)) longest[kind(token)] = token;
    for (const token of tokens.filter((token) => longest[kind(token)] !== token)) token.replaceWith(...token.childNodes);
    for (const code of codes) code.normalize();
}"""

RUN = """async (options) => {
    const { violations } = await axe.run(document, options);
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}"""


COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules that depend on colours, which take four fifths of axe's time."""
ONLY_COLOURS = {"runOnly": COLOURS}
NO_COLOURS = {"rules": {rule: {"enabled": False} for rule in COLOURS}}


def complaints(page, rules=None):
    """A line for each rule and element, of all rules or of some; one token of code of each kind stands for all."""
    page.evaluate(ONE_TOKEN_OF_EACH_KIND)
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    return page.evaluate(RUN, OPTIONS | (rules or {}))
