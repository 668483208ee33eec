/** Requests to the server, and what it says is wrong. */

/** An error in the server's words; column counts characters of the question. */
export class ApiError extends Error {
  constructor({ message, excerpt = null, column = null }, status = 0) {
    super(message);
    this.excerpt = excerpt;
    this.column = column;
    this.status = status;
  }
}

/**
 * The answer of an endpoint to some fields; those that are undefined are not sent.
 * @param {string} path the endpoint below /api/
 * @param {Object<string, any>} fields
 * @param {AbortSignal} [signal]
 */
export async function call(path, fields = {}, signal = undefined) {
  const response = await send(`/api/${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
    body: JSON.stringify(fields),
    signal,
  });
  return read(response);
}

/** The answer of an endpoint that is only read. */
export async function get(path, fields = {}, signal = undefined) {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  const query = given.length ? `?${new URLSearchParams(given)}` : '';
  return read(await send(`${path}${query}`, { headers: { Accept: 'application/json' }, signal }));
}

async function send(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError({
      message: 'The server does not answer. Is lmpnn-kge serve still running?',
    });
  }
}

async function read(response) {
  let content;
  try {
    content = await response.json();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    const message = `The server answered ${response.status} without JSON.`;
    throw new ApiError({ message }, response.status);
  }
  if (content.error) throw new ApiError(content.error, response.status);
  return content;
}

/** One request at a time: a new one cancels the one before it, whose outcome is dropped. */
export class Latest {
  #controller = null;

  /** The outcome of a request, as {value} or {error}, or null if it was cancelled. */
  async outcome(request) {
    this.cancel();
    const controller = new AbortController();
    this.#controller = controller;
    const isCurrent = () => this.#controller === controller;
    try {
      const value = await request(controller.signal);
      return isCurrent() ? { value } : null;
    } catch (error) {
      if (!isCurrent()) return null;
      if (!(error instanceof ApiError)) throw error;
      return { error };
    } finally {
      if (isCurrent()) this.#controller = null;
    }
  }

  call(path, fields) {
    return this.outcome((signal) => call(path, fields, signal));
  }

  get(path, fields) {
    return this.outcome((signal) => get(path, fields, signal));
  }

  cancel() {
    const controller = this.#controller;
    this.#controller = null;
    controller?.abort();
  }
}

/** Something to do once nothing has happened for some milliseconds. */
export class Pause {
  #timer = 0;

  constructor(action, milliseconds) {
    this.action = action;
    this.milliseconds = milliseconds;
  }

  /** Wait from now on. */
  begin() {
    this.cancel();
    this.#timer = setTimeout(this.action, this.milliseconds);
  }

  cancel() {
    clearTimeout(this.#timer);
  }
}
