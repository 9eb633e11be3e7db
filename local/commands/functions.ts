import { defineCommand } from '../cli/command.ts';
import { flag, integer, text } from '../cli/options.ts';

export const serveOptions = {
  storage: text('PLACE', './data-functions', 'Where the data are: s3://bucket/prefix, or a directory'),
  port: integer('PORT', 0, 65_535, 2113, 'Port to listen on, on the loopback address; 0 takes any free one'),
  instances: integer('COUNT', 1, 16, 2, 'Processes that a function may have at once'),
  build: flag('Build the bundles anew before'),
  'no-ticks': flag('Run the tick only at POST /tick, not every minute'),
};

export const functionsServeCommand = defineCommand({
  name: 'functions serve',
  summary: 'Run the function bundles on this machine, without an account',
  details: 'Turns each request into the event that the platform would make of it, and hands it to the built function in a process of its own, over the platform\'s runtime interface. The paths are those of a node; POST /tick runs a tick, which else runs every minute. Options of the functions come from the environment (SERVER_...), credentials and endpoint of S3 as its SDK reads them (AWS_...). Unless the environment names others, the users admin and ops have the default passwords.',
  options: serveOptions,
  examples: [
    { line: 'skua functions serve', does: 'Data in a directory, on port 2113' },
    { line: 'skua functions serve --storage s3://my-bucket/dev --port 0 --build', does: 'Data in a bucket; fresh bundles' },
    { line: 'curl -X POST http://127.0.0.1:2113/tick', does: 'Run a tick, and see what it did' },
  ],
  run: async (input, io) => (await import('./run-functions-serve.ts')).runFunctionsServe(input, io),
});
