//! A client on standard input and output, before a gateway with real decisions.

use gateway::stdio_client::StdioClient;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex};
use tokio::task::JoinHandle;

use crate::client::PATIENCE;
use crate::world::World;

/// The two ends that a client holds, and the gateway that serves it.
struct LocalClient {
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    served: JoinHandle<std::io::Result<()>>,
}

impl LocalClient {
    fn of(world: &World) -> Self {
        let (input, to_read) = duplex(1 << 16);
        let (to_write, output) = duplex(1 << 16);
        let client = StdioClient::new(world.front.clone(), "/mcp");
        let served = tokio::spawn(client.serve(to_read, to_write, std::future::pending()));
        Self { input, output: BufReader::new(output).lines(), served }
    }

    async fn say(&mut self, line: impl ToString) {
        self.input.write_all(format!("{}\n", line.to_string()).as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await.unwrap().unwrap();
        serde_json::from_str(&line.expect("another line")).unwrap()
    }

    /// Ends the input, and returns the lines that were not read.
    async fn end(mut self) -> Vec<String> {
        drop(self.input);
        let mut rest = Vec::new();
        while let Some(line) = tokio::time::timeout(PATIENCE, self.output.next_line()).await.unwrap().unwrap()
        {
            rest.push(line);
        }
        self.served.await.unwrap().unwrap();
        rest
    }
}

#[tokio::test]
async fn a_line_that_is_refused_gets_the_code_of_its_fault_and_the_id_of_its_request() {
    let world = World::new().await;
    let mut client = LocalClient::of(&world);
    for (line, code, id) in [
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#, -32600, json!(7)),
        (r#"{"jsonrpc":"2.0","id":"8","method":"tools/call","params":{"name":["x"]}}"#, -32600, json!("8")),
        (r#"{"jsonrpc":"2.0","id":9,"id":10,"method":"ping"}"#, -32600, Value::Null),
        (r#"[{"jsonrpc":"2.0","id":11,"method":"ping"}]"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, Value::Null),
        ("{", -32700, Value::Null),
    ] {
        client.say(line).await;
        let answer = client.next().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{line}: {answer}");
    }
    assert_eq!(client.end().await, [""; 0]);
}

#[tokio::test]
async fn a_refusal_over_http_has_the_id_of_its_request() {
    let world = World::new().await;
    let answer = world.nobody().say(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call" })).await;
    let reply = answer.reply();
    assert_eq!((answer.status, &reply["error"]["code"], &reply["id"]), (400, &json!(-32600), &json!(7)));
}
