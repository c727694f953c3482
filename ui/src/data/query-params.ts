// What a question to the server may have behind its path. By itself, so that what reads filters needs no browser.
export type Params = Readonly<
  Record<string, string | number | boolean | readonly string[] | null | undefined>
>;
