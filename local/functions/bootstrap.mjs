// What the platform's own runtime does for a function, as far as functions here need it: takes calls from the runtime
// interface, one after the other, and gives the results back. Arguments: the module of the function, or one of several
// and its name. No dependencies, so that it runs where only a bundle is.
import * as http from 'node:http';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';

const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(':');
const BASE = '/2018-06-01/runtime';
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

function call(method, route, body) {
  return new Promise((resolve, reject) => {
    const request = http.request(
      {
        host,
        port,
        agent,
        method,
        path: `${BASE}${route}`,
        headers:
          body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      },
      (reply) => {
        const pieces = [];
        reply.on('data', (piece) => pieces.push(piece));
        reply.on('end', () =>
          resolve({ status: reply.statusCode, headers: reply.headers, body: Buffer.concat(pieces).toString('utf8') }),
        );
        reply.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

function errorText(error) {
  const { name = 'Error', message = String(error), stack = '' } = error instanceof Error ? error : {};
  return JSON.stringify({
    errorType: name,
    errorMessage: message,
    stackTrace: stack
      .split('\n')
      .slice(1)
      .map((line) => line.trim()),
  });
}

let handler;
try {
  const module = await import(pathToFileURL(path.resolve(process.argv[2])).href);
  ({ handler } = module[process.argv[3]] ?? module);
  if (typeof handler !== 'function') throw new TypeError(`${process.argv[2]} exports no function named handler`);
} catch (error) {
  await call('POST', '/init/error', errorText(error)).catch(() => {});
  console.error(error);
  process.exit(1);
}

for (;;) {
  const { headers, body } = await call('GET', '/invocation/next').catch(() => process.exit(0));
  const id = headers['lambda-runtime-aws-request-id'];
  const deadlineMs = Number(headers['lambda-runtime-deadline-ms']);
  const context = {
    awsRequestId: id,
    functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
    invokedFunctionArn: headers['lambda-runtime-invoked-function-arn'] ?? '',
    memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    logGroupName: process.env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: process.env.AWS_LAMBDA_LOG_STREAM_NAME,
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => Math.max(0, deadlineMs - Date.now()),
  };
  let route = `/invocation/${id}/response`;
  let result;
  try {
    result = JSON.stringify(await handler(JSON.parse(body), context)) ?? 'null';
  } catch (error) {
    route = `/invocation/${id}/error`;
    result = errorText(error);
  }
  await call('POST', route, result).catch(() => process.exit(0));
}
