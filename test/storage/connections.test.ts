// How errors of sockets, of pg and of the server are classed, and how a URL with several hosts is read. No server is asked.
import { describe, expect, test } from "vitest";
import { StoreError } from "../../src/errors.ts";
import { toStoreError } from "../../src/storage/postgres/error-codes.ts";
import { Hosts } from "../../src/storage/postgres/hosts.ts";
import { isLost } from "../../src/storage/retry-calls.ts";
import { toStoreError as ofSqlite } from "../../src/storage/sqlite/error-codes.ts";
import { troubleOf } from "../../src/storage/trouble.ts";

const failure = (code: string | undefined, message = "as the driver says it"): Error =>
  Object.assign(new Error(message), code === undefined ? {} : { code });

describe("errors of the driver", () => {
  const away = [
    "EPIPE",
    "ECONNRESET",
    "EHOSTDOWN",
    "ENETDOWN",
    "EPROTO",
    "ERR_SSL_WRONG_VERSION_NUMBER",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "ERR_STREAM_DESTROYED",
    "EWHATEVER",
    undefined,
  ];
  test.each(away)("[O9] %s without an SQLSTATE is a lost connection: waited for and tried again", (code) => {
    const ours = toStoreError(failure(code));
    expect(ours).toBeInstanceOf(StoreError);
    expect((ours as StoreError).code).toMatch(/^(CONNECTION_LOST|DATABASE_UNREACHABLE)$/);
    expect([isLost(ours), troubleOf(ours)]).toEqual([true, "passing"]);
  });

  test.each([
    "53000",
    "53100",
    "53200",
    "53300",
    "53400",
    "57014",
    "57P01",
    "57P03",
    "57P05",
    "58030",
    "58P01",
    "XX000",
    "25P04",
    "08006",
  ])("[O9] a server that says %s is waited for", (state) =>
    expect(troubleOf(toStoreError(failure(state)))).toBe("passing"),
  );

  test.each(["53200", "58030", "XX000", "57014", "53300"])(
    "[O9] an enqueue is tried again after %s",
    (state) => expect(isLost(toStoreError(failure(state)))).toBe(true),
  );

  test.each([10, 10 | (4 << 8), 7, 15])(
    "[O9] SQLite's result code %i is waited for and tried again",
    (errcode) => {
      const ours = ofSqlite(Object.assign(failure("ERR_SQLITE_ERROR"), { errcode }), "jobs.db");
      expect([isLost(ours), troubleOf(ours)]).toEqual([true, "passing"]);
    },
  );

  test("[O9] what only an operator can mend ends a worker; what nobody knows does not", () => {
    expect(
      ["42P01", "42501", "XX001", "HF001"].map((state) => troubleOf(toStoreError(failure(state)))),
    ).toEqual(["permanent", "permanent", "permanent", "permanent"]);
    expect(["22012", "0A000", "28P01"].map((state) => troubleOf(toStoreError(failure(state))))).toEqual([
      "unclear",
      "unclear",
      "passing",
    ]);
    expect(troubleOf(new TypeError("a fault of ours"))).toBe("unclear");
  });

  test("[O9] the message of a lost connection names the socket's code once", () => {
    for (const words of ["read ECONNRESET", "as the driver says it", ""]) {
      const { message } = toStoreError(failure("ECONNRESET", words)) as StoreError;
      expect(message.match(/ECONNRESET/g)).toHaveLength(1);
    }
  });

  test("[O9] a fault of a program is not taken for a lost connection, and a missing password is named", () => {
    const fault = new TypeError("x is not a function");
    expect(toStoreError(fault)).toBe(fault);
    const words = "SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string";
    expect(toStoreError(failure(undefined, words))).toMatchObject({ code: "PERMISSION_DENIED" });
    const missing = toStoreError(failure("3D000"));
    // `open` gives up at once; a worker waits, because a restore drops the database and makes it again.
    expect([isLost(missing), troubleOf(missing)]).toEqual([false, "passing"]);
  });
});

describe("hosts of a URL", () => {
  test("one host is left as it is", () => {
    const url = "postgres://me:p%40ss@db.example.org/app?sslmode=require&x=a,b";
    expect(Hosts.of(url).url).toBe(url);
  });

  test("[O9] several are tried in their order, the last good one first", async () => {
    const hosts = Hosts.of(
      "postgres://me:pw@one:5432,two:5433,[::1]:5434/app?target_session_attrs=primary&a=b",
    );
    expect(hosts.writable).toBe(true);
    const tried: string[] = [];
    const connect = (good: string) => async (): Promise<string> => {
      tried.push(new URL(hosts.url).host);
      if (hosts.url.includes(good)) return hosts.url;
      throw failure("ECONNREFUSED");
    };
    expect(await hosts.first(connect("two"))).toBe("postgres://me:pw@two:5433/app?a=b");
    await hosts.first(connect("two"));
    expect(tried).toEqual(["one:5432", "two:5433", "two:5433"]);
    await expect(hosts.first(connect("four"))).rejects.toThrow("as the driver says it");
    expect(tried.slice(3)).toEqual(["two:5433", "[::1]:5434", "one:5432"]);
  });

  test("a password that is refused is not tried at the next host", async () => {
    const hosts = Hosts.of("postgres://one,two/app");
    let tries = 0;
    const refused = hosts.first(async () => {
      tries += 1;
      throw failure("28P01");
    });
    await expect(refused).rejects.toMatchObject({ code: "28P01" });
    expect(tries).toBe(1);
  });

  test("[O18] a database that does not exist is not looked for at the next host, and the message says how to make it", async () => {
    const hosts = Hosts.of("postgres://me:hunter2@one,two/app?sslmode=require&password=hunter2");
    let tries = 0;
    const refused = hosts.first(async () => {
      tries += 1;
      throw failure("3D000");
    });
    await expect(refused).rejects.toMatchObject({
      code: "DATABASE_MISSING",
      message:
        "The database \"app\" does not exist. Create it with: holdfast create --url 'postgres://me@one/app?sslmode=require', with the password in it.",
    });
    expect(tries).toBe(1);
    await expect(
      Hosts.of("postgres://one/app").first(() => Promise.reject(failure("3D000"))),
    ).rejects.toThrow("holdfast create --url postgres://one/app");
    // A pool of the user's: its address is not known here.
    expect(toStoreError(failure("3D000", 'database "app" does not exist'))).toMatchObject({
      code: "DATABASE_MISSING",
      message:
        'The database does not exist: database "app" does not exist. Create it with: holdfast create --url postgres://…',
    });
  });

  test.each([
    ["postgres://one,two/app?target_session_attrs=standby", /any, read-write or primary; got "standby"/],
    ["postgres://one,two:notaport/app", /is not valid/],
    ["postgres://one,two", /names no database/],
    ["postgres://one,two/", /names no database/],
  ])("%s is refused as BAD_URL", (url, message) => {
    expect(() => Hosts.of(url)).toThrow(
      expect.objectContaining({ code: "BAD_URL", message: expect.stringMatching(message) as string }),
    );
  });
});
