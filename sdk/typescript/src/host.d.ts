// The host of WebAssembly: services/transparency/src/ui/verify/host.js, which the build copies.
export function runVerifier(module: WebAssembly.Module, request: object): Promise<any>;
