"""Environment variables that commands of a session get beside the ordinary ones."""


class Variables(dict[str, str]):
    """What the user's hooks have set when the session began."""

    def __init__(self) -> None:
        super().__init__()
        self.confined: dict[str, str] = {}
        """What confined hooks have set: no command outside the sandbox has that, for it could lead to any code."""
