"""hosts.py: all hosts, in the order in which they run."""
import instruments
import languages
import programs
import servers

HOSTS = languages.HOSTS + servers.HOSTS + programs.HOSTS + instruments.HOSTS
