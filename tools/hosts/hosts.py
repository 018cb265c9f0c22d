"""hosts.py: all hosts, in the order in which they run."""
import confined
import instruments
import languages
import programs
import servers

HOSTS = servers.HOSTS + instruments.HOSTS + languages.HOSTS + programs.HOSTS + confined.HOSTS
