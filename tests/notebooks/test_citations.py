"""Citations: each leads to its paper, each paper stands at the end, and the bibliography has none for nothing."""

import re
import unicodedata

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from notebooks.source import build_lessons as build
from notebooks.source import citations
from notebooks.source.citations import BIBLIOGRAPHY, cite, cited, entries
from tests.helpers.laws import raised


def rendered(*texts):
    cells = [new_markdown_cell(text) for text in texts]
    return [cell.source for cell in cite(new_notebook(cells=[*cells, new_code_cell("weights @ value2017")])).cells]


def test_a_citation_becomes_a_link():
    first, last, code = rendered(
        "Pieces [@sennrich2016, section 3.2; @vaswani2017]. @och2003 measure; `@brown1993` is code, a@brown1993 mail.",
        "## Summary",
    )
    assert first == (
        "Pieces ([Sennrich et al. 2016](https://arxiv.org/abs/1508.07909), section 3.2; "
        "[Vaswani et al. 2017](https://arxiv.org/abs/1706.03762)). "
        "[Och and Ney (2003)](https://aclanthology.org/J03-1002) measure; `@brown1993` is code, a@brown1993 mail."
    )
    assert code == "weights @ value2017"
    assert last.splitlines()[2:] == [
        "**Sources**",
        "",
        "- Franz Josef Och and Hermann Ney (2003). [A Systematic Comparison of Various Statistical Alignment Models]"
        "(https://aclanthology.org/J03-1002). Computational Linguistics 29 (1).",
        "- Rico Sennrich, Barry Haddow and Alexandra Birch (2016). [Neural Machine Translation of Rare Words with "
        "Subword Units](https://arxiv.org/abs/1508.07909). ACL.",
        "- Ashish Vaswani, Noam Shazeer, Niki Parmar and others (2017). [Attention Is All You Need]"
        "(https://arxiv.org/abs/1706.03762). NeurIPS.",
    ]


def test_without_a_citation_nothing_is_added():
    assert rendered("## Summary")[0] == "## Summary"


def test_names_are_written_as_their_owners_write_them():
    last = rendered("@brown1993", "@stahlberg2019 and @wu2016")[1]
    assert "Peter F. Brown, Stephen A. Della Pietra, Vincent J. Della Pietra and Robert L. Mercer (1993)" in last
    assert "Yonghui Wu, Mike Schuster, Zhifeng Chen and others (2016)" in last
    assert "Cat Got Your Tongue?](https://arxiv.org/abs/1908.10090) EMNLP." in last


def test_a_paper_that_is_not_in_the_bibliography_stops_the_build(tmp_path):
    source = tmp_path / "01_a.py"
    source.write_text("# %% [markdown]\n# [@nobody1999]\n")
    assert "bibliography.bib has no nobody1999" in str(raised(build.BuildError, lambda: build.generate(source)))


def law_every_paper_is_cited(papers):
    used = {key for path in build.lessons() for key in cited(path.read_text(encoding="utf-8"))}
    assert set(papers) == used, f"cited nowhere: {set(papers) - used}; not there: {used - set(papers)}"


def test_every_paper_is_cited():
    law_every_paper_is_cited(entries())
    for broken in (entries() | {"nobody1999": None}, dict(list(entries().items())[1:])):
        with pytest.raises(AssertionError, match="nobody1999|not there: {'"):
            law_every_paper_is_cited(broken)


def law_an_entry_is_complete(key, entry):
    assert re.fullmatch(rf"[a-z]+{entry.fields['year']}[a-z]?", key), f"{key}: another year"
    name = unicodedata.normalize("NFKD", citations._last_name(entry.persons["author"][0]))  # ü is u and a mark
    author = name.encode("ascii", "ignore").decode().lower().split()[0]
    assert key.startswith(author), f"{key}: another author"
    assert entry.fields["title"] and entry.fields["journal"] and entry.fields["url"].startswith("https://")


@pytest.mark.parametrize("key", entries())
def test_an_entry_is_complete(key):
    law_an_entry_is_complete(key, entries()[key])
    with pytest.raises(AssertionError, match="another author"):
        law_an_entry_is_complete("zebra" + entries()[key].fields["year"], entries()[key])


def test_the_bibliography_is_sorted():
    keys = re.findall(r"@\w+{(\w+),", BIBLIOGRAPHY.read_text(encoding="utf-8"))
    assert keys == sorted(keys) == list(entries()) and len(keys) == len(set(keys))
