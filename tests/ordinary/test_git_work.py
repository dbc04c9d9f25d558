"""The comparison of two copies finds nothing where nothing confines git, and finds what was done to one of them."""

import shutil

from tests.ordinary.git_work import Step, differences, steps
from tests.ordinary.person import myself
from tests.ordinary.session import session


def test_the_same_work_is_the_same_and_other_work_is_told():
    with myself() as person:
        inside = person.folder("inside")
        for name in ("a.py", "b.py"):
            (inside / name).write_text("x = 1\n")
        person.run(["bash", "-c", "git init -q . && git add -A && git commit -q -m Begin"], cwd=inside)
        outside = person.home / "outside"
        shutil.copytree(inside, outside)
        with session(person, inside, "none") as opened:
            same = differences(person, opened, inside, outside, steps("a.py", "b.py"))
            (inside / "a.py").write_text("x = 2\n")
            (other,) = differences(person, opened, inside, outside, [Step("status", "git status --porcelain")])

    assert same == []
    assert other[1] == "output: M a.py in the place of -; state:  M a.py in the place of -"
