/* To whom weir's sockets are given: users and groups of this system, and whether we may. */
#include "surroundings.h"

#include "weir/units.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

static bool
is_own_group(gid_t gid)
{
	gid_t groups[256];
	const int count = getgroups(256, groups);

	for (int i = 0; i < count; i++) {
		if (groups[i] == gid)
			return true;
	}
	return getegid() == gid;
}

static void
check_owner(const struct surroundings *look, const struct named_key *key, const char *owner)
{
	const struct passwd *entry = getpwnam(owner);
	uint64_t number = 0;

	if (entry == NULL && parse_uint(slice_of(owner), UINT32_MAX - 1, &number) != 0)
		surroundings_say(
			look, SEVERITY_ERROR, key, "there is no user \"%s\" on this system", owner);
	else if (geteuid() != 0 && (entry != NULL ? entry->pw_uid : (uid_t)number) != geteuid())
		surroundings_say(look, SEVERITY_ERROR, key,
			"only root can give a socket to user %s; leave owner out, and give it to a "
			"group",
			owner);
}

static void
check_group(const struct surroundings *look, const struct named_key *key, const char *group)
{
	const struct group *entry = getgrnam(group);
	uint64_t number = 0;

	if (entry == NULL && parse_uint(slice_of(group), UINT32_MAX - 1, &number) != 0)
		surroundings_say(look, SEVERITY_ERROR, key,
			"there is no group \"%s\" on this system", group);
	else if (geteuid() != 0 && !is_own_group(entry != NULL ? entry->gr_gid : (gid_t)number))
		surroundings_say(look, SEVERITY_ERROR, key,
			"the user that checks, id %u, is no member of group %s, and cannot give a "
			"socket to it",
			(unsigned)geteuid(), group);
}

void
surroundings_check_rights(const struct surroundings *look, const struct named_key *key,
	const struct config_listen *listen)
{
	if (listen->owner != NULL)
		check_owner(look, key, listen->owner);
	if (listen->group != NULL)
		check_group(look, key, listen->group);
}
