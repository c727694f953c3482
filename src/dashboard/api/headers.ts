/** Response headers of the API, which the page reads. */

/** On every answer to a GET: when it was begun to be read, in epoch milliseconds of the server's clock. */
export const READ_AT = "x-holdfast-read-at";
