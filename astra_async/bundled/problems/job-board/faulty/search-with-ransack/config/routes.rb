Rails.application.routes.draw do
  get "status", to: proc { [200, { "Content-Type" => "application/json" }, ['{"service":"job-board"}']] }

  post "register", to: "accounts#create"
  post "login", to: "accounts#login"
  resources :jobs, only: %i[index show create] do
    resources :applications, only: :create
  end
end
