"""Makes the notebooks of the concept inventory, one for each form, from its questions.

    course_lib/assignments/inventory -> source/NN_concepts_…   with the right letters, for nbgrader
                                     -> release/NN_concepts_…  what students get, by nbgrader's own steps

Usage: python -m notebooks.source.build_inventory
"""

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_lib.assignments import inventory
from course_lib.grading import released
from notebooks.source import build_lessons as lessons
from notebooks.source.build_assignments import FOLDER, marks

INTRODUCTION = {
    "before": """# Twelve questions, before the course

What do you think *now*?
Each question has four choices, and one of them is right.
Write its letter between the quotes, without looking anything up; write `?` if you do not know, rather than guess.

Nothing is graded here but that you have answered: a wrong letter counts as much as a right one.
The same questions come back after the course, their choices in another order.
Only then do you learn what is right.""",
    "after": """# Twelve questions, after the course

The questions are those from before the course; the order of their choices is another one.
Write the letter of the right choice between the quotes, without looking anything up; write `?` if you do not know.

Nothing is graded here but that you have answered: a wrong letter counts as much as a right one.""",
}
ALONE = """## What moved

If you are in a class, hand in first: your teacher has a page of what moved in the whole class, without names.
If you learn alone, run the next cell.
It reads your notebook from before the course.
Of each question it tells whether you had it right then and now, and why the right choice is right."""
IMPORTS = {
    "before": "from course_lib.assignments import check\n\nanswers = {}",
    "after": "from course_lib.assignments import check, what_moved\n\nanswers = {}",
}


def instructor(form: str) -> NotebookNode:
    """The version with the right letters, which nbgrader's steps take out."""
    cells = [new_markdown_cell(INTRODUCTION[form]), _given(IMPORTS[form], 0)]
    for number, question in enumerate(inventory.QUESTIONS, start=1):
        listed = zip(inventory.LETTERS, inventory.choices(question, form), strict=True)
        texts = "\n".join(f"- **{letter}**: {text}" for letter, text in listed)
        cells.append(new_markdown_cell(f"## {number} · {question.title}\n\n{question.asked}\n\n{texts}"))
        line = f'{inventory.VARIABLE}["{question.name}"] = "{{}}"'
        cell = new_code_cell(line.format(inventory.key(question, form)))
        cell.metadata = {"nbgrader": marks(f"inventory-{question.name}", solution=True), "planted": line.format("")}
        cells.append(cell)
    check = new_code_cell(f'check("{inventory.EXERCISE.name}", {inventory.VARIABLE})')
    check.metadata["nbgrader"] = marks("inventory-check", grade=True, locked=True, points=1)
    cells += [new_markdown_cell("## Done?\n\nThis cell says whether every question has a letter."), check]
    if form == "after":
        cells += [new_markdown_cell(ALONE), _given(f"print(what_moved({inventory.VARIABLE}))", 1)]
    notebook = new_notebook(cells=cells, metadata=nbformat.from_dict(lessons.METADATA))
    return lessons.assign_ids(nbformat.from_dict(notebook))


def _given(source: str, number: int) -> NotebookNode:
    cell = new_code_cell(source)
    cell.metadata["nbgrader"] = marks(f"given-{number}", locked=True)
    return cell


def main() -> None:
    """Writes both forms for teachers and for students."""
    for form, name in inventory.FORMS.items():
        for kind, notebook in (("source", instructor(form)), ("release", released(instructor(form)))):
            path = FOLDER / kind / name / f"{name}.ipynb"
            path.parent.mkdir(parents=True, exist_ok=True)
            lessons.write(notebook, path)
        print(f"{name}: built", flush=True)


if __name__ == "__main__":
    main()
