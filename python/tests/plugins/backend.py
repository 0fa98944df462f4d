"""A configuration backend as it is written for Stolos."""

from collections.abc import Mapping


class Apps(Mapping):
    APPS = {"fetch": {"job_id": "{date}", "bash_cmd": "true", "autofill_values": {"date": (20140601, 20140602)}}}

    def __getitem__(self, name):
        return self.APPS[name]

    def __iter__(self):
        return iter(self.APPS)

    def __len__(self):
        return len(self.APPS)
