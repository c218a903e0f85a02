"""The pages of the tree as a site with search and navigation, in target/site.

The pages stay what they are: Markdown that any host of Git repositories shows, with links to other files of the tree. Here they
are copied, and what the generator sees differently is put right in the copies: files of code that pages link to become pages,
and what stands within lists is indented as it expects. Links that lead nowhere fail, also in the pages that come out.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from tree import ROOT, run

PAGES = ROOT / "target/site-pages"
SITE = ROOT / "target/site"
GALLERY = SITE / "gallery"
# Where the generator works, which empties the folder before.
MADE = ROOT / "target/site-made"

# The navigation, in the order in which somebody new reads. A folder's pages follow its own, by their titles.
NAVIGATION = {
    "Start": ["README.md", "docs/on-a-cluster.md", "docs/python.md", "docs/compared.md", "docs/gallery.md", "docs/glossary.md"],
    "Four verbs": ["docs/record.md", "docs/explain.md", "docs/training.md", "docs/predict.md", "docs/apply.md", "docs/advise.md", "docs/compare.md"],
    "Cookbook": "docs/cookbook",
    "Reference": ["docs/import.md", "docs/json.md", "docs/machines.md", "docs/sweeps.md", "docs/mpi-io.md", "docs/mpi.md",
                  "docs/servers.md", "docs/cluster.md", "packaging/README.md", "docs/notebooks/first.ipynb"],
    "Design": "docs/design",
    "Measured": "docs/measured",
    "Studies": "papers",
    "Project": ["apps/collapse/README.md", "CONTRIBUTING.md", "docs/style.md", "SECURITY.md", "CHANGELOG.md"],
}
# Read before the other pages of its folder, which has none of its own.
FIRST = "docs/design/architecture.md"

LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)#])")
ITEM = re.compile(r"(\s*)([-*]|\d+\.) +(?=\S)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generator", type=Path, default=ROOT / ".venv-site/bin/zensical", help="default: %(default)s")
    arguments = parser.parse_args()
    shutil.rmtree(PAGES, ignore_errors=True)
    pages = copied()
    # The generator wants both folders below that of its configuration.
    configuration = ROOT / "target/zensical.toml"
    configuration.write_text(settings(pages))
    outcome = subprocess.run([arguments.generator, "build", "--clean", "--strict"], cwd=configuration.parent, text=True, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if outcome.returncode != 0:
        # Its colours, and the trace of its own end, tell nothing.
        told = re.sub(r"\x1b\[[\d;]*m", "", outcome.stdout).partition("Traceback")[0]
        sys.exit(f"{told}the site was not built")
    # What `make gallery` writes there stays.
    if GALLERY.exists():
        shutil.copytree(GALLERY, MADE / "gallery")
    dead = sorted(dead_links())
    for page, link in dead:
        print(f"{page}: leads nowhere: {link}")
    if dead:
        sys.exit(1)
    shutil.rmtree(SITE, ignore_errors=True)
    MADE.rename(SITE)
    print(f"{len(pages)} pages: python3 -m http.server --directory {SITE.relative_to(ROOT)}")


def copied():
    """Copies every page of the tree, and what pages show and link to, to PAGES; the titles of the pages by their paths."""
    files = run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT).split("\0")
    pages = {name for name in files if name.endswith(".md") and not name.startswith(("crates/", "fuzz/")) and (ROOT / name).is_file()}
    pages.add("docs/notebooks/first.ipynb")
    titles = {}
    for name in sorted(pages):
        text = (ROOT / name).read_text()
        if name.endswith(".ipynb"):
            text = notebook(text)
        text = LINK.sub(lambda link: linked(name, link[1]), text)
        if name == "docs/gallery.md" and GALLERY.exists():
            text += '\n<a href="../gallery/index.html">Open the gallery</a>\n'
        write(renamed(name), indented(text))
        titles[name] = re.search(r"^# (.*)", text, re.M)[1].replace("`", "")
    return titles


def renamed(name):
    """The path of a page's copy."""
    return re.sub(r"^README\.md$", "index.md", name.replace(".ipynb", ".md"))


def linked(page, link):
    """A page's link, as its copy needs it; pictures are copied, and files of code are made pages."""
    if re.match(r"[a-z]+:", link):
        return link
    target = ((ROOT / page).parent / link).resolve()
    name = str(target.relative_to(ROOT))
    if target.suffix == ".png":
        (PAGES / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(target, PAGES / name)
    elif target.is_file() and target.suffix not in {".md", ".ipynb"}:
        kind = {".rs": "rust", ".py": "python", ".c": "c", ".toml": "toml", ".yaml": "yaml", ".lua": "lua"}.get(target.suffix, "text")
        write(f"{name}.md", f"# {target.name}\n\n`{name}` in the tree.\n\n```{kind}\n{target.read_text()}```\n")
        return f"{link}.md"
    elif name == "README.md":
        return link.replace("README.md", "index.md")
    return link.replace(".ipynb", ".md")


def write(name, text):
    path = PAGES / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def notebook(text):
    """A notebook as a page: its words, and its code in blocks."""
    cells = json.loads(text)["cells"]
    return "\n\n".join("".join(cell["source"]) if cell["cell_type"] == "markdown" else f"```python\n{''.join(cell['source'])}\n```"
                       for cell in cells) + "\n"


def indented(text):
    """The same text for Python-Markdown, which wants four blanks for each level within a list, and an empty line before one."""
    lines, levels, fenced, before = [], [], False, ""
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        blanks = len(line) - len(line.lstrip())
        item = None if fenced else ITEM.match(line)
        if line.strip() and not fenced:
            while levels and blanks < levels[-1]:
                levels.pop()
        if item and not levels and before and not ITEM.match(before) and not before.startswith(" "):
            lines.append("")
        within = levels[-1] if levels else 0
        lines.append(" " * (4 * len(levels)) + line[min(within, blanks):] if line.strip() else "")
        if item:
            levels.append(item.end())
        fenced ^= fence
        before = line
    return "\n".join(lines) + "\n"


def settings(titles):
    """The generator's configuration."""
    navigation = []
    for section, what in NAVIGATION.items():
        if isinstance(what, str):
            what = sorted((name for name in titles if name.startswith(f"{what}/")), key=lambda name: order(what, name, titles[name]))
        pages = ", ".join(f"{{ {json.dumps(titles[name])} = {json.dumps(renamed(name))} }}" for name in what if name in titles)
        navigation.append(f"  {{ {json.dumps(section)} = [{pages}] }},")
    return "\n".join([
        "[project]", 'site_name = "Pioscope"', 'site_description = "Where the I/O time of programs goes, and what would fix it"',
        f'docs_dir = "{PAGES.name}"', f'site_dir = "{MADE.name}"', "nav = [", *navigation, "]", FORMATS])


def order(folder, name, title):
    """Where a page comes in the navigation of its folder: as the folder's own page lists them."""
    own = ROOT / folder / "README.md"
    if name in {f"{folder}/README.md", FIRST}:
        return -1, title
    listed = own.read_text().find(f"]({Path(name).relative_to(folder)})") if own.is_file() else 0
    return listed, title


# No fonts of others: the site works without a network. Headings have the names that other hosts give them.
FORMATS = """
[project.theme]
language = "en"
font = false
features = ["content.code.copy", "navigation.indexes", "navigation.path", "navigation.sections", "navigation.top", "navigation.footer", "search.highlight"]

[[project.theme.palette]]
media = "(prefers-color-scheme)"
toggle.icon = "lucide/sun-moon"
toggle.name = "Light"

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/sun"
toggle.name = "Dark"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/moon"
toggle.name = "As the system"

[project.markdown_extensions.toc]
permalink = true
slugify = { object = "pymdownx.slugs.slugify", kwds = { case = "lower" } }

[project.markdown_extensions.tables]
[project.markdown_extensions.pymdownx.highlight]
pygments_lang_class = true
[project.markdown_extensions.pymdownx.superfences]
"""


class Names(HTMLParser):
    """The names in a page of HTML that links can lead to, and its links."""

    def __init__(self, text):
        super().__init__()
        self.names, self.links = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            if key in {"id", "name"}:
                self.names.add(value)
            elif key in {"href", "src"} and value is not None:
                self.links.add(value)


def dead_links():
    """The links of the site's pages whose page, or place in it, does not exist."""
    pages = {path: Names(path.read_text()) for path in MADE.rglob("*.html") if path.parent != MADE / "gallery"}
    for path, page in pages.items():
        # The page for names that are not there has links that begin at the site's root.
        for link in page.links if path.name != "404.html" else []:
            if re.match(r"[a-z]+:|//", link):
                continue
            where, _, name = link.partition("#")
            where = unquote(where.partition("?")[0])
            target = (path.parent / where).resolve() if where else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (name and target in pages and name not in pages[target].names):
                yield str(path.relative_to(MADE)), link


if __name__ == "__main__":
    main()
