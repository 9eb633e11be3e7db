// What runs in a page of somebody else, who knows the node's address and routes and has led a user there that is logged
// in at the node. Each function tries one way, and tells what it got to see.

/** Longest that a browser may take for one attempt, in milliseconds. */
const ATTEMPT_MS = 20_000;
const ENCODINGS = ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data'];

/**
 * What a promise comes to, as text: of a failure only that it is one, and `nothing` when the browser tells nothing at
 * all.
 */
async function seen(trying) {
  let timer;
  try {
    return await Promise.race([
      trying,
      new Promise((resolve) => {
        timer = setTimeout(resolve, ATTEMPT_MS, 'nothing');
      }),
    ]);
  } catch (error) {
    return `refused: ${error.name}`;
  } finally {
    clearTimeout(timer);
  }
}

async function fetched(url, init) {
  const response = await fetch(url, init);
  return `${response.type} ${response.status} ${await response.text()}`;
}

/** Requests by scripts, in all modes that browsers know, with the credentials that they hold and without. */
async function byScript(url, { method, body, type }) {
  const attempts = [];
  for (const credentials of ['include', 'omit']) {
    for (const referrerPolicy of ['no-referrer', 'unsafe-url']) {
      const init = { method, credentials, referrerPolicy, ...(body !== undefined && { body }) };
      const typed = body === undefined ? {} : { 'content-type': type };
      attempts.push([
        `fetch, cors, ${credentials}, ${referrerPolicy}`,
        seen(fetched(url, { ...init, mode: 'cors', headers: typed })),
      ]);
      attempts.push([
        `fetch, cors, our header, ${credentials}, ${referrerPolicy}`,
        seen(fetched(url, { ...init, mode: 'cors', headers: { ...typed, 'x-requested-with': 'skua' } })),
      ]);
      if (method === 'GET' || method === 'POST')
        attempts.push([
          `fetch, no-cors, ${credentials}, ${referrerPolicy}`,
          seen(fetched(url, { ...init, mode: 'no-cors' })),
        ]);
    }
  }
  attempts.push([
    'XMLHttpRequest',
    seen(
      new Promise((resolve, reject) => {
        const request = new XMLHttpRequest();
        request.open(method, url);
        request.withCredentials = true;
        request.addEventListener('load', () => resolve(`xhr ${request.status} ${request.responseText}`));
        request.addEventListener('error', () => reject(new TypeError()));
        request.send(body);
      }),
    ),
  ]);
  if (method === 'POST') {
    navigator.sendBeacon(url, new Blob([body ?? ''], { type: 'text/plain' }));
    for (const mode of ['cors', 'no-cors']) {
      attempts.push([
        `redirected, ${mode}`,
        seen(
          fetched(`/redirect?to=${encodeURIComponent(url)}`, {
            method,
            mode,
            credentials: 'include',
            ...(body !== undefined && { body }),
          }),
        ),
      ]);
    }
  }
  return Promise.all(attempts.map(async ([what, saw]) => `${method} ${url} by ${what}: ${await saw}`));
}

/**
 * A frame, until what it was sent to is in it. What is in a frame of another origin can't be looked at, which is tried.
 */
async function framed(begin, sandbox) {
  const frame = document.createElement('iframe');
  frame.name = `frame-${Math.random()}`;
  if (sandbox !== undefined) frame.sandbox = sandbox;
  document.body.append(frame);
  const loaded = new Promise((resolve) => {
    frame.addEventListener('load', resolve, { once: true });
  });
  begin(frame);
  await seen(loaded);
  const looks = [
    () => frame.contentDocument?.body.textContent ?? 'nothing',
    () => frame.contentWindow.document.body.textContent,
    () => frame.contentWindow.location.href,
    () => String(frame.contentWindow.frames.length),
    () => frame.contentWindow.localStorage.length,
  ];
  const saw = await Promise.all(
    looks.map((look) =>
      seen(
        new Promise((resolve) => {
          resolve(look());
        }),
      ),
    ),
  );
  frame.remove();
  return saw.join(', ');
}

/**
 * Forms that send themselves, as pages could before there were scripts. What is sent as text ends in a field's `=`,
 * which JSON can hold in a text.
 */
function byForm(url, { body }) {
  return Promise.all(
    [...ENCODINGS.map((encoding) => [encoding, url]), ['text/plain', `/redirect?to=${encodeURIComponent(url)}`]].map(
      async ([encoding, action]) => {
        const form = document.createElement('form');
        Object.assign(form, { method: 'POST', action, enctype: encoding });
        const fields =
          encoding === 'text/plain'
            ? [[`${(body ?? '{}').slice(0, -1)},"x":"`, '"}']]
            : Object.entries(JSON.parse(body ?? '{}'));
        for (const [name, value] of fields) {
          const input = document.createElement('input');
          Object.assign(input, {
            type: 'hidden',
            name,
            value: typeof value === 'string' ? value : JSON.stringify(value),
          });
          form.append(input);
        }
        document.body.append(form);
        const saw = await framed((frame) => {
          form.target = frame.name;
          form.submit();
        });
        form.remove();
        return `POST ${url} by a form of ${encoding}: ${saw}`;
      },
    ),
  );
}

/** All that may be done to change something. */
export async function change(node, change) {
  const url = node + change.path;
  const found = await byScript(url, change);
  if (change.method === 'POST') found.push(...(await byForm(url, change)));
  return found;
}

function element(name, attributes, look) {
  return seen(
    new Promise((resolve, reject) => {
      const made = Object.assign(document.createElement(name), attributes);
      const failed = (event) => reject(new TypeError(event.message));
      const done = (work) => {
        made.remove();
        work();
      };
      made.addEventListener('load', () =>
        done(() => {
          try {
            resolve(`loaded: ${look(made)}`);
          } catch (error) {
            reject(error);
          }
        }),
      );
      made.addEventListener('loadedmetadata', () => done(() => resolve(`loaded: ${made.duration}`)));
      made.addEventListener('error', (event) => done(() => failed(event)));
      document.body.append(made);
    }),
  );
}

function pictured(image) {
  const canvas = document.createElement('canvas');
  canvas.getContext('2d').drawImage(image, 0, 0);
  return canvas.toDataURL();
}

/** Messages that come from the node's pages. */
const messages = [];
addEventListener('message', ({ data, origin }) => {
  messages.push(`${origin}: ${JSON.stringify(data)}`);
});
/** What scripts of the node told by failing. */
const failures = [];
addEventListener('error', ({ message, filename }) => {
  failures.push(`${filename}: ${message}`);
});

/** All that may be done to look at something. */
export async function look(node, path) {
  const url = node + path;
  const before = new Set(Object.keys(globalThis));
  const found = await byScript(url, { method: 'GET' });
  const others = {
    'an image': element('img', { src: url }, pictured),
    'an image, asked for by CORS': element('img', { src: url, crossOrigin: 'use-credentials' }, pictured),
    'a script': element('script', { src: url }, () => ''),
    'a module': element('script', { src: url, type: 'module' }, () => ''),
    'an import': seen(import(url).then((module) => JSON.stringify(module))),
    'JSON as a module': seen(import(url, { with: { type: 'json' } }).then((module) => JSON.stringify(module))),
    'a style sheet': element('link', { rel: 'stylesheet', href: url }, ({ sheet }) =>
      Array.from(sheet.cssRules, ({ cssText }) => cssText).join(' '),
    ),
    'a video': element('video', { src: url, preload: 'metadata' }, () => ''),
    'a frame': framed((frame) => {
      frame.src = url;
    }),
    'a frame with a sandbox': framed((frame) => {
      frame.src = url;
    }, 'allow-scripts allow-forms'),
    'an object': element('object', { data: url }, (made) => made.contentDocument?.body.textContent ?? 'nothing'),
    'a worker': seen(
      new Promise((resolve, reject) => {
        new Worker(url).addEventListener('error', ({ message }) => reject(new TypeError(message)));
      }),
    ),
    'a live stream': seen(
      new Promise((resolve, reject) => {
        const source = new EventSource(url, { withCredentials: true });
        source.addEventListener('message', ({ data }) => resolve(data));
        source.addEventListener('error', () => {
          source.close();
          reject(new TypeError());
        });
      }),
    ),
    'a socket': seen(
      new Promise((resolve, reject) => {
        const socket = new WebSocket(url.replace('http', 'ws'));
        socket.addEventListener('open', () => resolve('open'));
        socket.addEventListener('error', () => reject(new TypeError()));
      }),
    ),
  };
  for (const [what, saw] of Object.entries(others)) found.push(`${url} by ${what}: ${await saw}`);
  const made = Object.keys(globalThis).filter((name) => !before.has(name) && !/^\d+$/.test(name));
  if (made.length > 0) found.push(`${url} left behind: ${made.join(' ')}`);
  // How long an answer is tells as much as the answer: of what is not ours browsers say 0.
  for (const entry of performance.getEntriesByName(url))
    found.push(`${url} in the timings: ${entry.encodedBodySize} ${entry.decodedBodySize} ${entry.transferSize}`);
  performance.clearResourceTimings();
  return [...found, ...messages.splice(0), ...failures.splice(0)];
}

let opened = null;

/** Opens the node's page in a window of its own. */
export function openWindow(url) {
  opened = open(url, 'opened');
  return opened !== null;
}

/**
 * Reaches for a window of the node that this page has opened, with messages and with all that windows show of one
 * another.
 */
export async function reach(orders) {
  for (const order of orders) for (const target of ['*', location.origin]) opened.postMessage(order, target);
  const looks = [
    () => opened.document.body.textContent,
    () => opened.location.href,
    () => opened.localStorage.length,
    () => opened.eval('1'),
    () => opened.sessionStorage.length,
    () => opened.history.length,
  ];
  return [
    ...(await Promise.all(
      looks.map((one) =>
        seen(
          new Promise((resolve) => {
            resolve(String(one()));
          }),
        ),
      ),
    )),
    ...messages.splice(0),
  ];
}
