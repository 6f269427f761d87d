/*
 * What a server is asked, and when.
 *
 * The commands that the scripts call are asked for by themselves first: a server that refuses one
 * names it then, which it does not always do from within a script. In a cluster a refusal comes
 * before the word that another server has the key, so any server of it can be asked; and so it
 * does before the word that a replica is not written to.
 */
#include "inquiry_private.h"

const struct inquiry_command inquiry_commands[INQUIRY_QUESTIONS] = {
	[INQUIRY_AUTH] = { "AUTH", NULL },
	[INQUIRY_SELECT] = { "SELECT", "+select" },
	[INQUIRY_HELLO] = { "HELLO", NULL },
	[INQUIRY_INFO_SERVER] = { "INFO", NULL },
	[INQUIRY_NAME_OF_MASTER] = { "SENTINEL GET-MASTER-ADDR-BY-NAME",
		"+sentinel|get-master-addr-by-name" },
	[INQUIRY_ROLE] = { "ROLE", "+role" },
	[INQUIRY_SLOTS] = { "CLUSTER SLOTS", "+cluster|slots" },
	[INQUIRY_ASKING] = { "ASKING", "+asking" },
	[INQUIRY_TIME] = { "TIME", "+time" },
	[INQUIRY_SET] = { "SET", "+set" },
	[INQUIRY_GET] = { "GET", "+get" },
	[INQUIRY_EVAL] = { "EVAL", "+eval" },
	[INQUIRY_EVALSHA] = { "EVALSHA", "+evalsha" },
	[INQUIRY_ENGINE] = { "EVAL", "+eval" },
	[INQUIRY_DEL] = { "DEL", "+del" },
	[INQUIRY_MEMORY] = { "INFO", "+info" },
};

static bool
begins_with(const struct inquiry *inquiry, enum inquiry_question question, const char *word)
{
	return strncmp(inquiry->report.refusals[question], word, strlen(word)) == 0;
}

/* What makes every further answer the same. */
static bool
is_pointless(const struct inquiry *inquiry)
{
	/* Without the right to SELECT, the others are asked for where we are. */
	if (inquiry->report.refusals[INQUIRY_AUTH][0] != '\0' ||
		(inquiry->report.refusals[INQUIRY_SELECT][0] != '\0' &&
			!begins_with(inquiry, INQUIRY_SELECT, "NOPERM")))
		return true;
	for (unsigned i = 0; i < INQUIRY_QUESTIONS; i++) {
		const enum inquiry_question question = (enum inquiry_question)i;

		if (begins_with(inquiry, question, "NOAUTH") ||
			begins_with(inquiry, question, "LOADING") ||
			begins_with(inquiry, question, "MASTERDOWN"))
			return true;
	}
	return false;
}

/* What limits need is asked of whoever may have limits. */
static bool
serves_limits(const struct inquiry *inquiry)
{
	return inquiry->kind != INQUIRY_SENTINEL && inquiry->report.mode != INQUIRY_MODE_SENTINEL;
}

/* By sentinels: weir asks for its role before it uses it. */
static bool
is_watched(const struct inquiry *inquiry)
{
	return inquiry->kind == INQUIRY_MASTER_OF_SENTINELS || inquiry->kind == INQUIRY_REPLICA;
}

bool
question_is_due(const struct inquiry *inquiry, enum inquiry_question question)
{
	const bool is_node = inquiry->kind == INQUIRY_NODE, serves = serves_limits(inquiry);

	if (inquiry->kind == INQUIRY_CANDIDATE)
		return question == INQUIRY_ROLE ||
			(question == INQUIRY_AUTH && inquiry->settings.password != NULL);
	if (is_pointless(inquiry))
		return question == INQUIRY_HELLO && !inquiry->report.was_asked[INQUIRY_HELLO];
	switch (question) {
	case INQUIRY_AUTH:
		return inquiry->settings.password != NULL;
	case INQUIRY_SELECT:
		return inquiry->settings.database != 0 && serves;
	case INQUIRY_HELLO:
		return true;
	case INQUIRY_INFO_SERVER:
		return inquiry->report.version[0] == '\0';
	case INQUIRY_NAME_OF_MASTER:
		return inquiry->kind == INQUIRY_SENTINEL;
	case INQUIRY_ROLE: /* also when there is no other way to tell a replica */
		return serves && !is_node &&
			(is_watched(inquiry) || inquiry->report.role[0] == '\0');
	case INQUIRY_SLOTS:
	case INQUIRY_ASKING:
		return is_node && inquiry->report.mode != INQUIRY_MODE_ALONE;
	case INQUIRY_TIME:
	case INQUIRY_SET:
	case INQUIRY_GET:
	case INQUIRY_EVAL:
	case INQUIRY_EVALSHA:
	case INQUIRY_DEL:
	case INQUIRY_MEMORY:
		return serves;
	case INQUIRY_ENGINE:
		return serves && !is_node && inquiry->kind != INQUIRY_REPLICA;
	case INQUIRY_QUESTIONS:
		break;
	}
	return false;
}

static void
add_words(struct args *args, const char *const *words)
{
	for (; *words != NULL; words++)
		args_add_text(args, *words);
}

#define WORDS(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static void
add_login(const struct inquiry *inquiry, struct args *args)
{
	args_add_text(args, "AUTH");
	if (inquiry->settings.username != NULL)
		args_add_text(args, inquiry->settings.username);
	args_add_text(args, inquiry->settings.password);
}

/* The least that the script decides: a policy of one a second; of a node of a cluster, which may
 * not have the key, and of a replica nothing. */
static void
add_decision(const struct inquiry *inquiry, struct args *args, bool whole)
{
	args_add_script(args, SCRIPT_DECIDE, whole);
	if (inquiry->kind == INQUIRY_NODE || inquiry->kind == INQUIRY_REPLICA) {
		args_add_bare_probe(args);
		return;
	}
	args_add_number(args, 1);
	args_add(args, inquiry->key.ptr, inquiry->key.len);
	add_words(args, WORDS("0", "1", "1", "1000000"));
}

/* A place of a second for the lease 1. */
static void
add_engine(const struct inquiry *inquiry, struct args *args)
{
	args_add_script(args, SCRIPT_ENGINE, true);
	args_add_number(args, 1);
	args_add(args, inquiry->key.ptr, inquiry->key.len);
	add_words(args,
		WORDS("0", "1", "1", "1", "1", "00000001:1000000:1=", "concurrent", "1",
			"1000000"));
}

static void
add_with_key(const struct inquiry *inquiry, struct args *args, const char *name)
{
	args_add_text(args, name);
	args_add(args, inquiry->key.ptr, inquiry->key.len);
}

void
question_put(const struct inquiry *inquiry, enum inquiry_question question, struct args *args)
{
	switch (question) {
	case INQUIRY_AUTH:
		add_login(inquiry, args);
		break;
	case INQUIRY_SELECT:
		args_add_text(args, "SELECT");
		args_add_number(args, (int64_t)inquiry->settings.database);
		break;
	case INQUIRY_HELLO:
		args_add_text(args, "HELLO");
		break;
	case INQUIRY_INFO_SERVER:
		add_words(args, WORDS("INFO", "server"));
		break;
	case INQUIRY_NAME_OF_MASTER:
		add_words(args,
			WORDS("SENTINEL", "GET-MASTER-ADDR-BY-NAME",
				inquiry->settings.sentinels.master));
		break;
	case INQUIRY_ROLE:
		args_add_text(args, "ROLE");
		break;
	case INQUIRY_SLOTS:
		add_words(args, WORDS("CLUSTER", "SLOTS"));
		break;
	case INQUIRY_ASKING:
		args_add_text(args, "ASKING");
		break;
	case INQUIRY_TIME:
		args_add_text(args, "TIME");
		break;
	case INQUIRY_SET:
		add_with_key(inquiry, args, "SET");
		add_words(args, WORDS("check", "PX", "10000"));
		break;
	case INQUIRY_GET:
		add_with_key(inquiry, args, "GET");
		break;
	case INQUIRY_EVAL:
		add_decision(inquiry, args, true);
		break;
	case INQUIRY_EVALSHA:
		add_decision(inquiry, args, false);
		break;
	case INQUIRY_ENGINE:
		add_engine(inquiry, args);
		break;
	case INQUIRY_DEL:
		add_with_key(inquiry, args, "DEL");
		break;
	case INQUIRY_MEMORY:
		add_words(args, WORDS("INFO", "memory"));
		break;
	case INQUIRY_QUESTIONS:
		break;
	}
}
