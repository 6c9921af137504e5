"""What axe finds on a page."""
from axe_playwright_python.base import AXE_SCRIPT

# Without `preload` it would look for imported style sheets in the wrong folder.
OPTIONS = {"preload": False, "resultTypes": ["violations"]}

# Axe looks at what lies on what for each of thousands of tokens. They are coloured by their kind.
# The longest of a kind stays: of a single character axe does not judge the contrast.
ONE_TOKEN_OF_EACH_KIND = """() => {
    for (const code of document.querySelectorAll(".highlight pre")) {
        const tokens = [...code.querySelectorAll("span")];
        const longest = {};
        for (const token of tokens)
            if (!(longest[token.className]?.textContent.length >= token.textContent.length)) longest[token.className] = token;
        for (const token of tokens)
            if (longest[token.className] !== token) token.replaceWith(...token.childNodes);
        code.normalize();
    }
}"""

RUN = """async (options) => {
    const { violations } = await axe.run(document, options);
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}"""


def complaints(page):
    """A line for each rule and element; in each block of code one token of each kind stands for all."""
    page.evaluate(ONE_TOKEN_OF_EACH_KIND)
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    return page.evaluate(RUN, OPTIONS)
