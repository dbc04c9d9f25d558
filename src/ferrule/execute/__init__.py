"""Running a tool's body: the only place that awaits one."""
