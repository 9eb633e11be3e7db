// The first line of `npm test` and its like: how long it takes. On two processors with nothing else to do.
const HOW_LONG = {
  test: 'about 3 minutes',
  'test:long': 'about 12 minutes',
  'test:all': 'hours',
};

const [name] = process.argv.slice(2);
console.log(`npm run ${name} takes ${HOW_LONG[name]} on two processors.`);
