"""What attacks through tools from elsewhere need: a project that the user may trust, and somebody to ask."""

from ferrule import Engine, Settings
from ferrule.permissions import Answer
from ferrule.permissions.trust import Trust, code_files, project_files


class Asked(list):
    """Somebody who remembers every question; lets calls pass, but nothing out of the sandbox."""

    def __init__(self, *, allow=True, always=False):
        self.allow, self.always = allow, always

    async def ask(self, question):
        self.append(question)
        return Answer(allow=self.allow and question.kind != "outside", always=self.always)


class Project:
    """A workspace that the user may trust."""

    def __init__(self, tmp_path):
        self.folder = tmp_path / "work"
        self.folder.mkdir()
        self.state = str(tmp_path / "state")

    def put(self, name, text, *, mode=0o644):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        path.chmod(mode)
        return path

    def skill(self, name, *, header=""):
        return self.put(f".agents/skills/{name}/SKILL.md", f"---\ndescription: x\n{header}---\nText.\n")

    def trust(self):
        folder = str(self.folder)
        Trust(self.state).grant(folder, project_files(folder))
        Trust(self.state, "code").grant(folder, code_files(folder))

    def opened(self, *, ask=None, dialect="claude", hooks=(), **settings):
        given = Settings(**settings) if settings else None
        return Engine(self.folder, dialect=dialect, ask=ask, hooks=hooks, settings=given, state=self.state)
