// A job that the database itself refuses, although every check of ours has let it pass: its input is "poison".
import type { FreshStore } from "../support/stores.ts";

export async function poison(fresh: FreshStore): Promise<void> {
  const refuses = "new.input = '\"poison\"'";
  if (fresh.dialect === "sqlite") {
    await fresh.query(
      `create trigger poison before insert on ${fresh.table("job")} when ${refuses} begin select raise(abort, 'poison'); end`,
    );
    return;
  }
  await fresh.query(
    `create function ${fresh.table("poison")}() returns trigger language plpgsql as $$ begin raise exception 'poison'; end $$`,
  );
  await fresh.query(
    `create trigger poison before insert on ${fresh.table("job")} for each row when (${refuses}) execute function ${fresh.table("poison")}()`,
  );
}
