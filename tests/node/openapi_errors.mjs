// Validates OpenAPI descriptions: the form of each against the schema of OpenAPI, and its references.
//
//     openapi_errors.mjs FILE...
//
// Prints JSON: for each file a list with the validator's errors.

import { readFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';

/** Returns the errors of one description. */
async function errorsOf(file) {
  const validator = new Validator();
  const { valid, errors } = await validator.validate(JSON.parse(readFileSync(file, 'utf8')));
  if (!valid) return [errors].flat();
  try {
    validator.resolveRefs();
    return [];
  } catch (error) {
    return [error.message];
  }
}

console.log(JSON.stringify(await Promise.all(process.argv.slice(1).map(errorsOf))));
