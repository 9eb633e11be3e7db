/**
 * Makes the messages of gRPC (`../messages/*.ts`) of the files beside this one: `npm run grpc:messages`. A message is a
 * plain object whose fields are all there, `undefined` where a message, a member of a oneof or an optional field was
 * not sent; what arrives wins over what came before it in the same oneof. Numbers of 64 bits, texts and identifiers are
 * read as `../messages/wire.ts` says. What methods are asked is read, and what they answer is written; and what
 * `DETAILS` names besides. Messages whose fields are the same are made once, under the name of the first; those without
 * fields are in `wire.ts`.
 */
import { readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';

const folder = dirname(fileURLToPath(import.meta.url));
const into = join(folder, '..', 'messages');
/** What stands in several of them is made for the first. */
const files = [
  'shared.proto',
  'streams.proto',
  ...readdirSync(folder).filter((name) => name.endsWith('.proto') && !['shared.proto', 'streams.proto'].includes(name)),
];
const root = new protobuf.Root();
root.resolvePath = (_, name) => join(folder, name);
root.loadSync(files).resolveAll();

const UUID = '.event_store.client.UUID';
/** What stands in no method: details of errors. */
const DETAILS = [
  'google.rpc.Status',
  'google.rpc.BadRequest',
  'kurrent.rpc.AccessDeniedErrorDetails',
  'kurrent.rpc.NotLeaderNodeErrorDetails',
  ...[
    'BadRequest',
    'MaximumAppendEventSizeExceeded',
    'MaximumAppendSizeExceeded',
    'StreamDeleted',
    'WrongExpectedVersion',
  ].map((what) => `event_store.client.${what}`),
  ...[
    'AppendConsistencyViolation',
    'AppendRecordSizeExceeded',
    'AppendTransactionSizeExceeded',
    'StreamAlreadyInAppendSession',
    'StreamDeleted',
    'StreamRevisionConflict',
    'StreamTombstoned',
  ].map((what) => `kurrentdb.protocol.v2.streams.errors.${what}ErrorDetails`),
].map((name) => root.lookupType(name));
const SCALARS = {
  bool: { type: 'boolean', none: 'false', read: 'reader.bool()', write: (value) => `.bool(${value})`, wire: 0 },
  int32: { type: 'number', none: '0', read: 'reader.int32()', write: (value) => `.int32(${value})`, wire: 0 },
  uint32: { type: 'number', none: '0', read: 'reader.uint32()', write: (value) => `.uint32(${value})`, wire: 0 },
  double: { type: 'number', none: '0', read: 'reader.double()', write: (value) => `.double(${value})`, wire: 1 },
  uint64: {
    type: 'number',
    none: '0',
    read: 'wire.uint64(reader)',
    call: (value) => `wire.writeUint64(writer, ${value})`,
    wire: 0,
  },
  int64: {
    type: 'number | bigint',
    readType: 'number',
    none: '0',
    read: 'wire.int64(reader)',
    call: (value) => `wire.writeInt64(writer, ${value})`,
    wire: 0,
  },
  sint64: { type: 'number', none: '0', read: 'wire.sint64(reader)', write: (value) => `.sint64(${value})`, wire: 0 },
  string: { type: 'string', none: "''", read: 'wire.text(reader)', write: (value) => `.string(${value})`, wire: 2 },
  bytes: {
    type: 'Uint8Array',
    none: 'wire.NO_BYTES',
    read: 'wire.bytes(reader)',
    write: (value) => `.bytes(${value})`,
    wire: 2,
  },
};

const moduleOf = (type) => type.filename.slice(folder.length + 1).replace('.proto', '');
/** Names of messages within messages are joined. */
const nameOf = (type) => (type.parent instanceof protobuf.Type ? `${nameOf(type.parent)}${type.name}` : type.name);

function kindOf(field) {
  if (field.map) return 'map';
  if (field.resolvedType instanceof protobuf.Enum) return 'enum';
  if (field.resolvedType?.fullName === UUID) return 'uuid';
  return field.resolvedType === null ? 'scalar' : 'message';
}

const firsts = new Map();
const standsFor = new Map();

/** The first message of its file that has the same fields; itself where the sources call it by its name. */
function firstOf(type) {
  if (standsFor.has(type)) return standsFor.get(type);
  standsFor.set(type, type);
  if (DETAILS.includes(type) || moduleOf(type) === 'google') return type;
  const fields = type.fieldsArray.map((field) => {
    const { resolvedType } = field;
    const of =
      resolvedType instanceof protobuf.Type ? firstOf(resolvedType).fullName : (resolvedType?.fullName ?? field.type);
    return `${field.id} ${field.name} ${field.map} ${field.repeated} ${field.hasPresence !== false} ${field.partOf?.name} ${of}`;
  });
  const key = fields.join('\n');
  if (!firsts.has(key)) firsts.set(key, type);
  standsFor.set(type, firsts.get(key));
  return firsts.get(key);
}

/** All messages that these are made of. */
function within(types) {
  const found = new Set();
  const add = (given) => {
    const type = firstOf(given);
    if (found.has(type) || type.fullName === UUID) return;
    found.add(type);
    for (const { resolvedType } of type.fieldsArray) if (resolvedType instanceof protobuf.Type) add(resolvedType);
  };
  types.forEach(add);
  return found;
}

const methods = root.nestedArray.flatMap(function services(item) {
  return item instanceof protobuf.Service
    ? item.methodsArray
    : item instanceof protobuf.Namespace
      ? item.nestedArray.flatMap(services)
      : [];
});
const READ = within(methods.map((method) => method.resolvedRequestType));
const WRITTEN = within([...methods.map((method) => method.resolvedResponseType), ...DETAILS]);

/** Elements count (`../messages/wire.ts`): lists of other scalars, of which there are none, would need a way to. */
function textOnly({ type, fullName }) {
  if (type !== 'string') throw new Error(`${fullName} is a list of ${type}: let wire.ts count its elements.`);
  return 'Text';
}

class Module {
  constructor(name) {
    this.name = name;
    this.imports = new Map();
    this.lines = [];
  }

  ref(given, what) {
    const type = firstOf(given);
    if (type.fieldsArray.length === 0) return what === 'type' ? 'wire.Nothing' : `wire.${what}Nothing`;
    const module = moduleOf(type);
    const name = what === 'type' ? nameOf(type) : what === 'read' ? `read${nameOf(type)}` : `write${nameOf(type)}`;
    if (module === this.name) return name;
    // Names of other packages get theirs, since packages have messages of one name.
    const prefix = module
      .split('-')
      .map((part) => part[0].toUpperCase() + part.slice(1))
      .join('');
    const local = what === 'type' ? `${prefix}${name}` : `${name}Of${prefix}`;
    this.imports.set(`${module} ${name}`, {
      module,
      text: what === 'type' ? `type ${name} as ${local}` : `${name} as ${local}`,
    });
    return local;
  }

  fieldType(field, isRead = false) {
    const kind = kindOf(field);
    if (kind === 'map')
      return field.type === 'string'
        ? 'ReadonlyMap<string, string>'
        : `ReadonlyMap<string, ${this.ref(field.resolvedType, 'type')}>`;
    const one =
      kind === 'enum'
        ? 'number'
        : kind === 'uuid'
          ? 'Uuid'
          : kind === 'scalar'
            ? (isRead && SCALARS[field.type].readType) || SCALARS[field.type].type
            : this.ref(field.resolvedType, 'type');
    return field.repeated ? `readonly ${one.includes(' ') ? `(${one})` : one}[]` : one;
  }

  isAbsentable(field) {
    return (
      !field.repeated &&
      !field.map &&
      (field.partOf !== null || field.hasPresence || ['message', 'uuid'].includes(kindOf(field)))
    );
  }

  none(field) {
    if (this.isAbsentable(field)) return 'undefined';
    if (field.map) return 'new Map()';
    if (field.repeated) return '[]';
    return kindOf(field) === 'enum' ? '0' : SCALARS[field.type].none;
  }

  readOne(field) {
    const kind = kindOf(field);
    const endOf = field.repeated ? 'endOfElement' : 'endOf';
    if (kind === 'uuid') return `wire.uuid(reader, wire.${endOf}(reader, depth), depth)`;
    if (kind === 'enum') return 'reader.int32()';
    return kind === 'scalar'
      ? SCALARS[field.type].read
      : `${this.ref(field.resolvedType, 'read')}(reader, wire.${endOf}(reader, depth), depth)`;
  }

  wireOf(field) {
    const kind = kindOf(field);
    return kind === 'enum' ? 0 : kind === 'scalar' ? SCALARS[field.type].wire : 2;
  }

  writeOne(field, value) {
    const kind = kindOf(field);
    const tag = ((field.id << 3) | this.wireOf(field)) >>> 0;
    if (kind === 'uuid') return `writer.uint32(${tag}).fork(); wire.writeUuid(${value}, writer); writer.ldelim();`;
    if (kind === 'message')
      return `writer.uint32(${tag}).fork(); ${this.ref(field.resolvedType, 'write')}(${value}, writer); writer.ldelim();`;
    if (kind === 'enum') return `writer.uint32(${tag}).int32(${value});`;
    const { write, call } = SCALARS[field.type];
    return write === undefined ? `writer.uint32(${tag}); ${call(value)};` : `writer.uint32(${tag})${write(value)};`;
  }

  message(type) {
    if (type.fieldsArray.length === 0 || (!READ.has(type) && !WRITTEN.has(type))) return;
    const name = nameOf(type);
    const fields = type.fieldsArray.sort((a, b) => a.id - b.id);
    this.lines.push(`export interface ${name} {`);
    for (const field of fields)
      this.lines.push(
        `  readonly ${field.name}${this.isAbsentable(field) ? '?' : ''}: ${this.fieldType(field)}${this.isAbsentable(field) ? ' | undefined' : ''};`,
      );
    this.lines.push('}', '');
    if (READ.has(type)) this.reader(name, fields);
    if (WRITTEN.has(type)) this.writer(name, fields);
  }

  reader(name, fields) {
    this.lines.push(
      `export const read${name} = wire.reader((): wire.Open<${name}> => ({ ${fields.map((field) => `${field.name}: ${this.none(field)}`).join(', ')} }), {`,
    );
    for (const field of fields) {
      const tag = ((field.id << 3) | this.wireOf(field)) >>> 0;
      const others = field.partOf === null ? [] : field.partOf.fieldsArray.filter((other) => other !== field);
      const cleared = others.map((other) => ` message.${other.name} = undefined;`).join('');
      let line;
      if (field.map && field.type === 'string') line = `wire.textEntry(reader, message.${field.name}, depth);`;
      else if (field.map)
        line = `wire.messageEntry(reader, message.${field.name}, ${this.ref(field.resolvedType, 'read')}, depth);`;
      else if (field.repeated && kindOf(field) === 'scalar')
        line = `wire.add${textOnly(field)}(reader, message.${field.name});`;
      else if (field.repeated) line = `message.${field.name}.push(${this.readOne(field)});`;
      else line = `message.${field.name} = ${this.readOne(field)};${cleared}`;
      this.lines.push(`  ${tag}: (message, reader${line.includes('depth') ? ', depth' : ''}) => { ${line} },`);
    }
    this.lines.push('});', '');
  }

  writer(name, fields) {
    this.lines.push(`export function write${name}(message: ${name}, writer: Writer): void {`);
    for (const field of fields) {
      const value = `message.${field.name}`;
      if (field.map && field.type === 'string')
        this.lines.push(`  wire.writeTextEntries(writer, ${field.id}, ${value});`);
      else if (field.repeated) this.lines.push(`  for (const one of ${value}) { ${this.writeOne(field, 'one')} }`);
      else if (this.isAbsentable(field))
        this.lines.push(`  if (${value} !== undefined) { ${this.writeOne(field, value)} }`);
      else
        this.lines.push(
          `  if (${field.type === 'bytes' ? `${value}.length > 0` : field.type === 'int64' ? `Number(${value}) !== 0` : `${value} !== ${this.none(field)}`}) { ${this.writeOne(field, value)} }`,
        );
    }
    this.lines.push('}', '');
  }

  enumeration(type) {
    this.lines.push(
      `export const ${nameOf(type)} = { ${Object.entries(type.values)
        .map(([name, value]) => `${name}: ${value}`)
        .join(', ')} } as const;`,
      '',
    );
  }

  service(service) {
    const full = service.fullName.slice(1);
    this.lines.push(
      `/** \`${full}\` */`,
      `export const ${service.name}Service = {`,
      `  name: '${full}',`,
      '  methods: {',
    );
    for (const method of service.methodsArray) {
      const request = method.resolvedRequestType;
      const response = method.resolvedResponseType;
      this.lines.push(
        `    ${method.name}: { path: '/${full}/${method.name}', hasManyRequests: ${method.requestStream === true}, hasManyResponses: ${method.responseStream === true}, readRequest: ${this.ref(request, 'read')}, writeResponse: ${this.ref(response, 'write')} },`,
      );
    }
    this.lines.push('  },', '} as const;', '');
  }

  /** Services come behind the messages, which have to be there. */
  walk(parent) {
    const services = parent.nestedArray.filter((nested) => nested instanceof protobuf.Service);
    for (const nested of [...parent.nestedArray.filter((each) => !services.includes(each)), ...services]) {
      if (nested instanceof protobuf.Type && nested.fullName !== UUID && !nested.fullName.startsWith(`${UUID}.`)) {
        if (moduleOf(nested) === this.name) this.message(nested);
        this.walk(nested);
      } else if (nested instanceof protobuf.Enum && moduleOf(nested) === this.name) this.enumeration(nested);
      else if (nested instanceof protobuf.Service && moduleOf(nested) === this.name) this.service(nested);
      else if (nested instanceof protobuf.Namespace && !(nested instanceof protobuf.Type)) this.walk(nested);
    }
  }

  text() {
    const body = this.lines.join('\n');
    const imports = new Map();
    for (const { module, text } of this.imports.values()) imports.set(module, [...(imports.get(module) ?? []), text]);
    return [
      `// Made of ${this.name}.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.`,
      ...(body.includes('wire.') ? ["import * as wire from './wire.ts';"] : []),
      `import type { ${['Reader', 'Uuid', 'Writer'].filter((name) => [`: ${name},`, `: ${name})`, `: ${name};`, `: ${name} |`, ` ${name}[]`].some((use) => body.includes(use))).join(', ')} } from './wire.ts';`,
      ...[...imports]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([module, names]) => `import { ${names.sort().join(', ')} } from './${module}.ts';`),
      '',
      body,
    ].join('\n');
  }
}

for (const file of files) {
  const module = new Module(file.replace('.proto', ''));
  module.walk(root);
  writeFileSync(join(into, file.replace('.proto', '.ts')), module.text());
}
