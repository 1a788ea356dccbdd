"""Files and folders that survive kills, full disks, and several processes at once."""
