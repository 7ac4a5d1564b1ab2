Rails.application.routes.draw do
  get "status", to: proc { [200, { "Content-Type" => "application/json" }, ['{"service":"job-board"}']] }
end
