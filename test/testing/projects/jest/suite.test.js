const client = require('@eventstore/db-client');
const testing = require('skua/testing');
const { suite } = require('./suite.cjs');

jest.setTimeout(600_000);
suite({ test, testing, client });
